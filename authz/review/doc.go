// Package review asks the API server who a token belongs to (TokenReview) and
// what a caller may do (SubjectAccessReview). It owns everything that keeps the
// asking fast and bounded: the caches, the sharing of questions under way, and
// how many may be asked at once.
//
// A question that cannot be answered is GP-API-502 and is never remembered.
// Questions for writes are answered by the API server itself each time.
package review
