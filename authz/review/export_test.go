package review

// Sizes and lifetimes, for tests that cross them.
const (
	AcceptedTTL = acceptedTTL
	RefusedTTL  = refusedTTL
	RefusedSize = refusedSize
)
