package api

import "slices"

// Group is the API group of every SubjectAccessReview about an operation. No
// API server serves it: RBAC compares strings only.
const Group = "glidepath.hangar.io"

// Tier says how much a call can change.
type Tier string

// The tiers, from reading alone to proposing a change that a person merges.
const (
	TierRead    Tier = "T0"
	TierAct     Tier = "T1"
	TierPropose Tier = "T2"
)

// Scope says what a caller must be allowed to see for an operation.
type Scope string

// The scopes. ScopeSelf needs an accepted token only, ScopeApp a right in the
// namespace of the app in the path, and ScopeFleet a cluster-wide right, or one
// in an app's namespace where the query parameter app names it.
const (
	ScopeSelf  Scope = "self"
	ScopeApp   Scope = "app"
	ScopeFleet Scope = "fleet"
)

// Param is a parameter of an operation.
type Param struct {
	// Name is the name as sent. In is "path", "query" or "header".
	Name, In string
	// Pattern is an anchored regular expression that a string value must match
	// as a whole, empty where there is none.
	Pattern string
	// MaxLength bounds a string value, 0 where there is no such bound. The
	// names in paths are ASCII, so it counts bytes as well as characters.
	MaxLength int
	// Required says that a call without the parameter is refused.
	Required bool
}

// Operation is one operation of the contract.
type Operation struct {
	// ID is the operationId. It names the operation everywhere: in routes,
	// audit lines, metrics, spans and identities.
	ID string
	// Method is an HTTP method. Path is a URI template whose variables are the
	// PathParams, each a whole path segment.
	Method, Path string
	Tier         Tier
	// Backend is the name of the one backend that answers.
	Backend string
	Scope   Scope
	// Verb, Resource and Subresource are what the SubjectAccessReview asks
	// about, in the group [Group]. All are empty for ScopeSelf.
	Verb, Resource, Subresource string
	// Stream says that the answer stays open and is sent piece by piece.
	Stream bool
	// Write says that the operation changes something unless it is a dry run.
	Write bool
	// Cached says that the backend may answer from what it read before.
	Cached bool
	// Planned says that no backend serves the operation yet.
	Planned bool
	// The parameters, in the order of the contract. Of the query parameters
	// each may be sent at most once.
	PathParams, QueryParams, HeaderParams []Param
}

// Operations returns every operation, in the order of openapi.yaml. The slice
// and all it holds belong to the caller.
func Operations() []Operation {
	return operationTable()
}

// Lookup finds an operation by its operationId. What it returns belongs to the
// caller; one that asks often should keep the answer.
func Lookup(id string) (Operation, bool) {
	all := operationTable()
	i := slices.IndexFunc(all, func(op Operation) bool { return op.ID == id })
	if i < 0 {
		return Operation{}, false
	}
	return all[i], true
}
