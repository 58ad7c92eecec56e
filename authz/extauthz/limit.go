package extauthz

import (
	"fmt"
	"strconv"
	"time"

	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	"google.golang.org/grpc/codes"

	"hangar.io/glidepath/authz/bucket"
	"hangar.io/glidepath/authz/decision"
	"hangar.io/glidepath/internal/identity"
	"hangar.io/glidepath/internal/problem"
	"hangar.io/glidepath/internal/ratelimit"
)

// tooMany is an allowed call that is over a limit.
type tooMany struct {
	problem *problem.Error
	wait    time.Duration
}

// count counts an allowed call against the limits of its route, which only the
// edge's configuration can give, and by who was authenticated, which only
// authz can tell. A call that is refused for anything else never comes here.
func (s *Server) count(d *decision.Decision, route extensions) (*tooMany, error) {
	b := bucket.Call{Caller: d.Caller.Username, Person: identity.FoldPerson(d.OnBehalfOf)}
	for _, l := range []struct {
		name string
		to   *ratelimit.Limit
	}{{ratelimit.Extension, &b.Each}, {ratelimit.CallerExtension, &b.InAll}} {
		text, ok := route.get(l.name)
		if !ok {
			continue
		}
		limit, err := ratelimit.Parse(text)
		if err != nil {
			return nil, fmt.Errorf("the route of %s is misconfigured: %w", d.Operation.ID, err)
		}
		*l.to = limit
	}
	over, refused := s.limits.Take(b)
	if !refused {
		return nil, nil
	}
	who := "by this caller"
	switch {
	case over.Shared:
		who = "by all who share a limit for want of room"
	case over.InAll:
		who = "by this caller in all"
	case d.OnBehalfOf != "":
		who = "on behalf of this person"
	}
	return &tooMany{
		problem: problem.Newf(problem.EdgeTooManyRequests, "too many calls %s: the limit is %d in %s", who, over.Limit.Requests, over.Limit.Per),
		wait:    over.Wait,
	}, nil
}

// limited is the answer to a call that is allowed and over a limit. Its
// decision stays what it was; the rule says why it was not served.
func limited(d *decision.Decision, over *tooMany, traceID string) *authv3.CheckResponse {
	body := over.problem.Body(traceID)
	resp := denied(codes.ResourceExhausted, over.problem.Status(), body,
		// Whole seconds, never fewer than the wait.
		overwrite("retry-after", strconv.FormatInt(int64((over.wait+time.Second-1)/time.Second), 10)))
	resp.DynamicMetadata = auditFields(d, verdictAllow, field{"rule", body.Rule}, field{"error", body.Message})
	return resp
}
