package problem

import "net/http"

// Rule is one line of the error table: a stable name that callers may act on,
// the HTTP status it always comes with, and what would help when the place
// that refuses has nothing more exact to say.
type Rule struct {
	// ID is the stable name, such as GP-AUTHZ-001.
	ID string
	// Status is the HTTP status code.
	Status int
	// Message is what the answer says when nothing more exact is known.
	Message string
	// Hint is the usual way out; empty when there is none.
	Hint string
}

// The rules of authentication and authorization.
var (
	AuthNoToken = Rule{
		ID: "GP-AUTH-001", Status: http.StatusUnauthorized,
		Message: "this call carries no bearer token",
		Hint:    "send Authorization: Bearer <token>, or X-Glidepath-Authorization through the API server's service proxy",
	}
	AuthBadToken = Rule{
		ID: "GP-AUTH-002", Status: http.StatusUnauthorized,
		Message: "the token was not accepted",
		Hint:    "get a new token: this one may have expired, or be for another audience",
	}
	AuthNotDelegate = Rule{
		ID: "GP-AUTH-003", Status: http.StatusForbidden,
		Message: "only a delegate may act on behalf of someone",
		Hint:    "leave X-Glidepath-On-Behalf-Of out, or have an operator list this caller as a delegate",
	}
	AuthPersonMissing = Rule{
		ID: "GP-AUTH-004", Status: http.StatusBadRequest,
		Message: "a delegate's write must name the person it acts for",
		Hint:    "send X-Glidepath-On-Behalf-Of",
	}
	AuthPersonNotAllowed = Rule{
		ID: "GP-AUTH-005", Status: http.StatusForbidden,
		Message: "this person is not among those who may sign in",
		Hint:    "ask an operator to add the login to the allowed users",
	}
	AuthDenied = Rule{
		ID: "GP-AUTH-006", Status: http.StatusForbidden,
		Message: "this caller is denied for now",
		Hint:    "ask an operator of the gateway",
	}
	AuthzDenied = Rule{
		ID: "GP-AUTHZ-001", Status: http.StatusForbidden,
		Message: "not allowed",
	}
)

// The rules of the API itself.
var (
	BadRequest = Rule{
		ID: "GP-API-400", Status: http.StatusBadRequest,
		Message: "the request is malformed",
	}
	NotFound = Rule{
		ID: "GP-API-404", Status: http.StatusNotFound,
		Message: "no such thing",
	}
	Conflict = Rule{
		ID: "GP-API-409", Status: http.StatusConflict,
		Message: "the name is held by something else",
	}
	Unprocessable = Rule{
		ID: "GP-API-422", Status: http.StatusUnprocessableEntity,
		Message: "this cannot be done as asked",
	}
	TooManyStreams = Rule{
		ID: "GP-API-429", Status: http.StatusTooManyRequests,
		Message: "as many streams are open as may be",
		Hint:    "close one, or poll",
	}
	LiveNotFound = Rule{
		ID: "GP-LIVE-404", Status: http.StatusNotFound,
		Message: "the live TaskRun or its pod is gone, or has no pod yet",
		Hint:    "once the run has finished, read its archived log",
	}
	LogNotFound = Rule{
		ID: "GP-LOG-404", Status: http.StatusNotFound,
		Message: "no log was archived for this TaskRun",
	}
	SourceFailed = Rule{
		ID: "GP-API-502", Status: http.StatusBadGateway,
		Message: "a source of this API failed",
		Hint:    "try again",
	}
	Busy = Rule{
		ID: "GP-API-503", Status: http.StatusServiceUnavailable,
		Message: "this replica does as much as it may",
		Hint:    "try again",
	}
)

// The rules of what the edge answers itself, when a call never reached a
// decision or a backend.
var (
	EdgeBadRequest = Rule{
		ID: "GP-EDGE-400", Status: http.StatusBadRequest,
		Message: "the request is not one that the edge takes",
		Hint:    "send a plain HTTP request: a canonical path without percent-encoding, no header names with underscores, no upgrade",
	}
	// EdgeUnauthorized answers a call that came to a backend without the
	// identity that only the edge can give it.
	EdgeUnauthorized = Rule{
		ID: "GP-EDGE-401", Status: http.StatusUnauthorized,
		Message: "this call did not come through the edge",
		Hint:    "call the gateway, not the backend behind it",
	}
	EdgeNotFound = Rule{
		ID: "GP-EDGE-404", Status: http.StatusNotFound,
		Message: "no operation is served at this path",
		Hint:    "GET /v1/contract lists every operation; those that are planned have no route yet",
	}
	EdgeMethodNotAllowed = Rule{
		ID: "GP-EDGE-405", Status: http.StatusMethodNotAllowed,
		Message: "no operation has this path and method",
		Hint:    "the Allow header lists the methods of this path",
	}
	EdgeTimeout = Rule{
		ID: "GP-EDGE-408", Status: http.StatusRequestTimeout,
		Message: "the request did not arrive in time",
	}
	EdgeTooLarge = Rule{
		ID: "GP-EDGE-413", Status: http.StatusRequestEntityTooLarge,
		Message: "the request's body is larger than this operation takes",
	}
	EdgeUpgradeRequired = Rule{
		ID: "GP-EDGE-426", Status: http.StatusUpgradeRequired,
		Message: "this protocol version is not served",
		Hint:    "use HTTP/1.1 or HTTP/2",
	}
	EdgeTooManyRequests = Rule{
		ID: "GP-EDGE-429", Status: http.StatusTooManyRequests,
		Message: "too many calls",
		Hint:    "wait as long as Retry-After says",
	}
	EdgeHeadersTooLarge = Rule{
		ID: "GP-EDGE-431", Status: http.StatusRequestHeaderFieldsTooLarge,
		Message: "the request's headers are larger than the edge takes",
	}
	EdgeBadGateway = Rule{
		ID: "GP-EDGE-502", Status: http.StatusBadGateway,
		Message: "a backend gave no usable answer",
		Hint:    "try again",
	}
	EdgeUnavailable = Rule{
		ID: "GP-EDGE-503", Status: http.StatusServiceUnavailable,
		Message: "the gateway cannot answer this call now",
		Hint:    "try again",
	}
	EdgeGatewayTimeout = Rule{
		ID: "GP-EDGE-504", Status: http.StatusGatewayTimeout,
		Message: "the backend did not answer in time",
		Hint:    "try again",
	}
)

// EdgeRules gives the rules of the answers that Envoy makes by itself, by
// ascending status: the edge's configuration is built from them.
func EdgeRules() []Rule {
	return []Rule{
		EdgeBadRequest, EdgeNotFound, EdgeMethodNotAllowed, EdgeTimeout,
		EdgeTooLarge, EdgeUpgradeRequired, EdgeTooManyRequests,
		EdgeHeadersTooLarge, EdgeBadGateway, EdgeUnavailable,
		EdgeGatewayTimeout,
	}
}

// All gives every rule of the table: the API's, then the edge's.
func All() []Rule {
	api := []Rule{
		AuthNoToken, AuthBadToken, AuthNotDelegate, AuthPersonMissing,
		AuthPersonNotAllowed, AuthDenied, AuthzDenied, BadRequest, NotFound, Conflict,
		Unprocessable, TooManyStreams, LiveNotFound, LogNotFound, SourceFailed, Busy,
		EdgeUnauthorized,
	}
	return append(api, EdgeRules()...)
}
