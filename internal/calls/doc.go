// Package calls owns what every backend does with a call besides its own
// operations: which request is which operation, that nothing is answered
// without an identity, whose objects a call is about, the calls' spans, and
// which contract is served.
package calls
