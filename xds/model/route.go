package model

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"time"

	"hangar.io/glidepath/internal/ratelimit"
)

// Route is the way of one operation.
type Route struct {
	// Op is the operationId: the route's name, and the op of audit lines,
	// counters and spans.
	Op string
	// Method is matched exactly: a HEAD is not a GET. Path is a template whose
	// variables are whole segments, as {app}.
	Method, Path string
	Tier         string
	// Cluster is the name of the cluster that answers.
	Cluster string
	// Timeout bounds a call from the end of its request to the end of its
	// answer. A stream has none.
	Timeout time.Duration
	Stream  bool
	// Silence is how long a stream may send nothing.
	Silence time.Duration
	// RateLimit bounds the calls of each caller, or of each person that a
	// caller acts for; CallerRateLimit those of a caller in all. A zero one is
	// none. Neither counts what is not allowed.
	RateLimit, CallerRateLimit ratelimit.Limit
	// MaxBodyBytes bounds a request's body.
	MaxBodyBytes uint32
	// AuditFields are the names that the backend may add to this operation's
	// audit line, besides the rule and the error.
	AuditFields []string
}

// IsRead says that the call changes nothing, so that it may be tried again as
// long as no backend has begun to answer.
func (r Route) IsRead() bool { return r.Method == http.MethodGet }

var (
	opName     = regexp.MustCompile(`^[a-z][A-Za-z0-9]{0,62}$`)
	method     = regexp.MustCompile(`^[A-Z]{1,20}$`)
	literal    = regexp.MustCompile(`^[A-Za-z0-9._~-]+$`)
	variable   = regexp.MustCompile(`^\{[A-Za-z][A-Za-z0-9_]*\}$`)
	auditField = regexp.MustCompile(`^[a-z][A-Za-z0-9]{0,62}$`)
)

// maxVariable is Envoy's bound on the length of a variable's name.
const maxVariable = 20

// ownAuditFields are the keys of an audit line that no backend may write,
// because the edge says them itself.
var ownAuditFields = []string{
	"msg", "time", "op", "tier", "app", "caller", "onBehalfOf", "decision",
	"rule", "status", "ms", "error", "traceId", "requestId", "method",
}

func (e *Edge) validateRoutes() error {
	var errs []error
	ops, calls := map[string]bool{}, map[string]string{}
	for _, r := range e.Routes {
		if err := r.validate(); err != nil {
			errs = append(errs, fmt.Errorf("route %q: %w", r.Op, err))
		}
		if ops[r.Op] {
			errs = append(errs, fmt.Errorf("route %q: given twice", r.Op))
		}
		ops[r.Op] = true
		call := r.Method + " " + Shape(r.Path)
		if other, ok := calls[call]; ok {
			errs = append(errs, fmt.Errorf("route %q: matches the same calls as %q", r.Op, other))
		}
		calls[call] = r.Op
	}
	return errors.Join(errs...)
}

func (r Route) validate() error {
	var errs []error
	if !opName.MatchString(r.Op) {
		errs = append(errs, errors.New("the name is not an operationId"))
	}
	if !method.MatchString(r.Method) {
		errs = append(errs, fmt.Errorf("method %q is not one", r.Method))
	}
	errs = append(errs, validatePath(r.Path))
	if r.Tier == "" {
		errs = append(errs, errors.New("the tier is missing"))
	}
	if r.Stream != (r.Timeout == 0) || r.Timeout < 0 {
		errs = append(errs, fmt.Errorf("a timeout of %s: streams have none, all others need one", r.Timeout))
	}
	if r.Stream != (r.Silence > 0) {
		errs = append(errs, fmt.Errorf("a silence of %s: streams need a bound on it, all others have none", r.Silence))
	}
	if r.MaxBodyBytes == 0 {
		errs = append(errs, errors.New("the body has no bound"))
	}
	for _, l := range []ratelimit.Limit{r.RateLimit, r.CallerRateLimit} {
		if l.IsZero() {
			continue
		}
		if err := l.Validate(); err != nil {
			errs = append(errs, fmt.Errorf("rate limit: %w", err))
		}
	}
	errs = append(errs, validateAuditFields(r.AuditFields))
	return errors.Join(errs...)
}

func validatePath(path string) error {
	rest, ok := strings.CutPrefix(path, "/")
	if !ok {
		return fmt.Errorf("path %q does not begin with a slash", path)
	}
	var errs []error
	seen := map[string]bool{}
	for segment := range strings.SplitSeq(rest, "/") {
		switch {
		case segment == "." || segment == "..":
			errs = append(errs, fmt.Errorf("path %q is not canonical", path))
		case literal.MatchString(segment):
		case !variable.MatchString(segment):
			errs = append(errs, fmt.Errorf("path %q: segment %q is neither plain nor a variable", path, segment))
		case len(segment)-2 > maxVariable:
			errs = append(errs, fmt.Errorf("path %q: variable %s is longer than %d", path, segment, maxVariable))
		case seen[segment]:
			errs = append(errs, fmt.Errorf("path %q: variable %s stands twice", path, segment))
		default:
			seen[segment] = true
		}
	}
	return errors.Join(errs...)
}

func validateAuditFields(fields []string) error {
	var errs []error
	seen := map[string]bool{}
	for _, own := range ownAuditFields {
		seen[own] = true
	}
	for _, f := range fields {
		if !auditField.MatchString(f) {
			errs = append(errs, fmt.Errorf("audit field %q is not a plain name", f))
		}
		if seen[f] {
			errs = append(errs, fmt.Errorf("audit field %q is taken", f))
		}
		seen[f] = true
	}
	return errors.Join(errs...)
}

// HasVariables says whether a path template has any.
func HasVariables(path string) bool { return strings.Contains(path, "{") }

// Shape is a path template without the names of its variables: two templates
// of one shape match the same paths.
func Shape(path string) string {
	segments := strings.Split(path, "/")
	for i, s := range segments {
		if HasVariables(s) {
			segments[i] = "{}"
		}
	}
	return strings.Join(segments, "/")
}
