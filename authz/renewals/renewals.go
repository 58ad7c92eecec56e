// Package renewals owns authz's internal endpoint: backends show it the tickets
// of their open streams, and it decides each call again as it decided it when
// it came. It is not on the edge, and believes nothing but its own seal.
package renewals

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"hangar.io/glidepath/authz/authn"
	"hangar.io/glidepath/authz/decision"
	"hangar.io/glidepath/authz/extauthz"
	"hangar.io/glidepath/authz/operation"
	"hangar.io/glidepath/authz/ticket"
	"hangar.io/glidepath/authz/token"
	"hangar.io/glidepath/internal/problem"
	"hangar.io/glidepath/internal/renewal"
)

// Config is what a Server needs. All fields are required.
type Config struct {
	Operations *operation.Table
	// Decider is that of calls.
	Decider extauthz.Decider
	// Denied is the deny-list that Decider asks too.
	Denied  decision.DenyList
	Signer  extauthz.Signer
	Tickets *ticket.Sealer
	// Epoch gives what is denied by list, and a channel that is closed when
	// that changes.
	Epoch   func() (epoch string, changed <-chan struct{})
	Metrics prometheus.Registerer
}

// Server answers renewals. It is safe for concurrent use.
type Server struct {
	cfg     Config
	answers *prometheus.CounterVec
	reading *places       // for each request whose body is read
	batches *places       // for each request under way
	slots   chan struct{} // a place for each decision under way
	held    *places       // for each request that waits for an epoch
	ending  chan struct{} // closed when the process ends
}

const (
	maxReading = 64
	maxBatches = 32
	// share is what one peer may have of either: a replica of a backend has four requests under way at most.
	share        = 16
	maxDecisions = 128
	maxHeld      = 512
)

// The results of renewals that are no reasons of an end.
const (
	resultGranted    = "granted"
	resultUnanswered = "unanswered"
	resultUnreadable = "unreadable"
)

// New gives a Server.
func New(cfg Config) *Server {
	s := &Server{
		cfg: cfg,
		answers: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "glidepath_authz_renewals_total", Help: "Renewals of streams, by what became of them.",
		}, []string{"result"}),
		reading: newPlaces(maxReading, share), batches: newPlaces(maxBatches, share),
		slots: make(chan struct{}, maxDecisions), held: newPlaces(maxHeld, share), ending: make(chan struct{}),
	}
	for _, result := range []string{
		resultGranted, resultUnanswered, resultUnreadable, string(renewal.Expired), string(renewal.Revoked), string(renewal.Lifetime),
	} {
		s.answers.WithLabelValues(result)
	}
	cfg.Metrics.MustRegister(s.answers)
	return s
}

// Run lets requests wait for an epoch until ctx ends, and no longer: a process
// that ends waits for none of them. It is called once.
func (s *Server) Run(ctx context.Context) {
	<-ctx.Done()
	close(s.ending)
}

// renewAll answers a batch: each ticket by itself, none after another.
func (s *Server) renewAll(ctx context.Context, tickets []string) []renewal.Answer {
	answers := make([]renewal.Answer, len(tickets))
	var all sync.WaitGroup
	for i, text := range tickets {
		all.Go(func() {
			select {
			case s.slots <- struct{}{}:
				defer func() { <-s.slots }()
				answers[i] = s.renew(ctx, text)
			case <-ctx.Done():
				answers[i] = s.unanswered(problem.SourceFailed)
			}
		})
	}
	all.Wait()
	return answers
}

// renew decides a stream's call again.
func (s *Server) renew(ctx context.Context, text string) renewal.Answer {
	now := time.Now()
	t, err := s.cfg.Tickets.Open(text)
	if err != nil {
		// Of a key that another authz has, or that is gone: no verdict.
		s.answers.WithLabelValues(resultUnreadable).Inc()
		return renewal.Answer{Rule: problem.EdgeUnauthorized.ID}
	}
	op, ok := s.cfg.Operations.Lookup(t.Op)
	if !ok {
		return s.unanswered(problem.EdgeNotFound)
	}
	if err := s.denied(t); err != nil {
		rule := problem.From(err).Rule.ID
		s.answers.WithLabelValues(string(renewal.Revoked)).Inc()
		record(ctx, appOf(op, t), t, renewal.Revoked, rule, now)
		return renewal.Answer{Reason: renewal.Revoked, Rule: rule}
	}
	tok, err := token.FromHeaders(t)
	if err != nil {
		return s.unanswered(problem.AuthBadToken)
	}
	d := s.cfg.Decider.Decide(ctx, decision.Request{Operation: op, Method: op.Method, Target: t.Target, Headers: t})
	end, rule := judge(&d, t, tok, now)
	switch {
	case end != "":
		s.answers.WithLabelValues(string(end)).Inc()
		record(ctx, d.App, t, end, rule, now)
		return renewal.Answer{Reason: end, Rule: rule}
	case rule != "":
		s.answers.WithLabelValues(resultUnanswered).Inc()
		return renewal.Answer{Rule: rule}
	}
	return s.grant(ctx, &d, t, tok, now)
}

// denied asks the deny-list by what authz sealed itself, so that the list reaches
// open streams while nobody can tell whose their tokens are. Groups that the
// user name does not imply are left to the decision.
func (s *Server) denied(t ticket.Ticket) error {
	groups, _ := authn.ImpliedGroups(t.Username)
	return s.cfg.Denied.Check(authn.Restore(authn.Facts{Username: t.Username, Groups: groups}, ""), t.OnBehalfOf)
}

// appOf gives the app of a stream's call for the log.
func appOf(op *operation.Operation, t ticket.Ticket) string {
	target, err := op.Parse(op.Method, t.Target)
	if err != nil {
		return ""
	}
	return target.App
}

func (s *Server) grant(ctx context.Context, d *decision.Decision, t ticket.Ticket, tok token.Token, now time.Time) renewal.Answer {
	signed, err := s.cfg.Signer.Sign(extauthz.StreamClaims(d, tok, now))
	if err == nil {
		// Sealed anew, so that a key that no longer seals is soon needed no more.
		var next string
		if next, err = s.cfg.Tickets.Seal(t); err == nil {
			s.answers.WithLabelValues(resultGranted).Inc()
			return renewal.Answer{Identity: signed, Ticket: next}
		}
	}
	slog.ErrorContext(ctx, "a renewal could not be written", "rule", problem.SourceFailed.ID, "error", err)
	return s.unanswered(problem.SourceFailed)
}

func (s *Server) unanswered(rule problem.Rule) renewal.Answer {
	s.answers.WithLabelValues(resultUnanswered).Inc()
	return renewal.Answer{Rule: rule.ID}
}

// judge says whether a stream ends and why, by a new decision on its call. No
// reason and a rule mean that nobody could tell; neither, that it goes on.
func judge(d *decision.Decision, t ticket.Ticket, tok token.Token, now time.Time) (end renewal.Reason, rule string) {
	if !d.Allowed() {
		if d.Refusal == nil || d.Refusal.Status() >= http.StatusInternalServerError {
			return "", problem.SourceFailed.ID
		}
		expiry := tok.Unverified().Expiry
		if d.Refusal.Rule.ID == problem.AuthBadToken.ID && !expiry.IsZero() && !now.Before(expiry) {
			return renewal.Expired, d.Refusal.Rule.ID
		}
		return renewal.Revoked, d.Refusal.Rule.ID
	}
	switch {
	case d.Caller.Username != t.Username || d.OnBehalfOf != t.OnBehalfOf:
		return renewal.Revoked, problem.AuthBadToken.ID
	case d.Namespace.UID != t.NamespaceUID:
		// Another app under the same name.
		return renewal.Revoked, problem.NotFound.ID
	case now.Sub(t.Opened) >= ticket.MaxLife:
		return renewal.Lifetime, ""
	}
	return "", ""
}

// record writes the audit line of a stream that authz ends. The edge's own line
// of the call is written when the stream is closed, and knows no rule; both
// have the same requestId.
func record(ctx context.Context, app string, t ticket.Ticket, end renewal.Reason, rule string, now time.Time) {
	log := slog.With("op", t.Op, "caller", t.Username, "reason", string(end), "ms", now.Sub(t.Opened).Milliseconds())
	// A field without a value is left out. All are in the logger and not in the
	// record: records with a rule are thinned out, and this is an audit line.
	for _, f := range [][2]string{{"app", app}, {"onBehalfOf", t.OnBehalfOf}, {"rule", rule}, {"requestId", t.RequestID}} {
		if f[1] != "" {
			log = log.With(f[0], f[1])
		}
	}
	log.InfoContext(ctx, "audit.stream")
}
