// Package answer owns how a JSON body that many callers share is served: with
// a strong ETag of exactly the bytes that are sent, compressed where the caller
// takes it, and as 304 where the caller has it already.
package answer
