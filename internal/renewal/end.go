package renewal

import (
	"context"
	"errors"
)

// Reason is why a stream ends, as its caller reads it in the last event.
type Reason string

// The reasons for which a stream is ended here.
const (
	// Expired says that the caller's token is past its time.
	Expired Reason = "expired"
	// Revoked says that the call would be refused now: the token, the right or
	// the app is gone, or the caller is denied by list.
	Revoked Reason = "revoked"
	// Lifetime says that the stream was open for as long as one may be.
	Lifetime Reason = "lifetime"
	// Unrenewed says that for too long nobody could tell whether it may go on.
	Unrenewed Reason = "unrenewed"
)

// EndError is the cause of the context of a stream that was ended.
type EndError struct {
	Reason Reason
	// Rule is that of the refusal; empty where there was none.
	Rule string
}

// Error says why.
func (e *EndError) Error() string {
	text := "the stream is " + string(e.Reason)
	if e.Rule != "" {
		text += " (" + e.Rule + ")"
	}
	return text
}

// EndOf gives why a stream's context was ended, and false when it was not
// ended by its Keeper: the caller left, or the process ends.
func EndOf(ctx context.Context) (*EndError, bool) {
	return errors.AsType[*EndError](context.Cause(ctx))
}
