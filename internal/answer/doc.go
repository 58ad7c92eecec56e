// Package answer owns how a body that many callers share is served: with a
// strong ETag of exactly the bytes that are sent, compressed where the caller
// takes it, and as 304 where the caller has it already.
//
// An Answer is a body at hand, as live lists are, for seconds. A Stored is one
// that is kept for long: compressed alone, as it is written bit by bit.
package answer
