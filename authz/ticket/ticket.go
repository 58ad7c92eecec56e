// Package ticket owns renewal tickets: what a stream's backend holds so that
// authz can decide the stream's call again, sealed so that nobody but authz
// learns anything from it. The caller's token is in it and is kept nowhere
// else: a token that is taken back must end the stream.
package ticket

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"hangar.io/glidepath/authz/decision"
	"hangar.io/glidepath/authz/token"
	"hangar.io/glidepath/internal/renewal"
)

// MaxLife is how long a stream may be renewed.
const MaxLife = 24 * time.Hour

// Ticket is what decides a stream's call again. It prints as a placeholder.
type Ticket struct {
	// Op is the operationId, Target the call's path and, of a fleet operation,
	// its app: what a decision reads of the query.
	Op, Target string
	// Username, OnBehalfOf and NamespaceUID are what was decided when the
	// stream was opened. It goes on only as the same.
	Username, OnBehalfOf, NamespaceUID string
	// RequestID is the edge's own id of the call, which joins log lines.
	RequestID string
	Opened    time.Time

	secret string
}

// New gives the ticket of an allowed call.
func New(d *decision.Decision, r decision.Request, tok token.Token, now time.Time) Ticket {
	id, _ := r.Headers.Get("x-request-id")
	return Ticket{
		Op: d.Operation.ID, Target: d.Operation.Canonical(r.Target, d.App),
		Username: d.Caller.Username, OnBehalfOf: d.OnBehalfOf, NamespaceUID: d.Namespace.UID,
		RequestID: id, Opened: now, secret: tok.Secret(),
	}
}

const placeholder = "[ticket]"

// String keeps the token out of formatted text.
func (Ticket) String() string { return placeholder }

// GoString keeps the token out of %#v.
func (Ticket) GoString() string { return placeholder }

// LogValue keeps the token out of logs.
func (Ticket) LogValue() slog.Value { return slog.StringValue(placeholder) }

// Get gives the headers of the stream's call that a decision reads. A Ticket is
// token.Headers.
func (t Ticket) Get(name string) (value string, times int) {
	switch {
	case name == token.DirectHeader:
		return "Bearer " + t.secret, 1
	case name == decision.OnBehalfOfHeader && t.OnBehalfOf != "":
		return t.OnBehalfOf, 1
	}
	return "", 0
}

// sealed is the form of a ticket inside the seal.
type sealed struct {
	Token        string `json:"token"`
	Op           string `json:"op"`
	Target       string `json:"target"`
	Username     string `json:"user"`
	OnBehalfOf   string `json:"obo,omitempty"`
	NamespaceUID string `json:"ns,omitempty"`
	RequestID    string `json:"rid,omitempty"`
	Opened       int64  `json:"opened"` // seconds
}

// place binds what is sealed to being a ticket.
const place = "renewal ticket"

// ErrUnreadable says that a text is no ticket of ours, or of a key that is gone.
var ErrUnreadable = errors.New("the ticket does not open")

// Seal gives the form in which a ticket leaves authz: text for a header.
func (s *Sealer) Seal(t Ticket) (string, error) {
	plain, err := json.Marshal(sealed{
		Token: t.secret, Op: t.Op, Target: t.Target, Username: t.Username, OnBehalfOf: t.OnBehalfOf,
		NamespaceUID: t.NamespaceUID, RequestID: t.RequestID, Opened: t.Opened.Unix(),
	})
	if err != nil {
		return "", fmt.Errorf("writing a renewal ticket: %w", err)
	}
	text := base64.RawURLEncoding.EncodeToString(s.current().Seal(nil, plain, place))
	if len(text) > renewal.MaxTicketBytes {
		return "", fmt.Errorf("a renewal ticket of %d bytes, more than a request can carry", len(text))
	}
	return text, nil
}

// Open gives the ticket of a text, or ErrUnreadable.
func (s *Sealer) Open(text string) (Ticket, error) {
	if len(text) > renewal.MaxTicketBytes {
		return Ticket{}, ErrUnreadable
	}
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return Ticket{}, ErrUnreadable
	}
	plain, err := s.current().Open(nil, raw, place)
	if err != nil {
		return Ticket{}, ErrUnreadable
	}
	var in sealed
	if err := json.Unmarshal(plain, &in); err != nil {
		return Ticket{}, ErrUnreadable
	}
	return Ticket{
		Op: in.Op, Target: in.Target, Username: in.Username, OnBehalfOf: in.OnBehalfOf, NamespaceUID: in.NamespaceUID,
		RequestID: in.RequestID, Opened: time.Unix(in.Opened, 0), secret: in.Token,
	}, nil
}
