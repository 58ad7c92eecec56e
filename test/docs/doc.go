// Package docs owns the checks that keep the documentation true to the code:
// links lead somewhere, every setting of a process is documented, every decision
// is in the index, and every direct dependency has a reason.
package docs
