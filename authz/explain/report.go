package explain

import (
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hangar.io/glidepath/authz/authn"
	"hangar.io/glidepath/authz/decision"
	"hangar.io/glidepath/authz/namespaces"
	"hangar.io/glidepath/authz/operation"
	"hangar.io/glidepath/authz/review"
	"hangar.io/glidepath/internal/problem"
)

// Report is the path of one decision, in the order in which it was made. What
// was not reached is absent.
type Report struct {
	Call     Call      `json:"call"`
	Token    *Token    `json:"token,omitempty"`
	Caller   *Caller   `json:"caller,omitempty"`
	DenyList *DenyList `json:"denyList,omitempty"`
	App      *App      `json:"app,omitempty"`
	Reviews  []Review  `json:"reviews,omitempty"`
	Answer   Answer    `json:"answer"`
}

// Call is what is called.
type Call struct {
	Method string `json:"method"`
	Target string `json:"target"`
	// Operation is empty when the call is no operation's.
	Operation string `json:"operation,omitempty"`
	Tier      string `json:"tier,omitempty"`
	Scope     string `json:"scope,omitempty"`
	Backend   string `json:"backend,omitempty"`
	// Planned says that no gateway serves the operation yet.
	Planned bool `json:"planned,omitempty"`
}

// Token is what is known of the call's token: where it came from and what it
// says of itself. Never the token.
type Token struct {
	Source string `json:"source"`
	Header string `json:"header,omitempty"`
	// Issuer and Expires are claims that nobody has verified.
	Issuer     string `json:"issuer,omitempty"`
	Expires    string `json:"expires,omitempty"`
	VerifiedBy string `json:"verifiedBy"`
	// Note says what may be amiss with the question, not with the token.
	Note string `json:"note,omitempty"`
}

// noIssuer is the note at a token that the cluster refused, when it may be one
// of a person.
const noIssuer = "no --oidc-issuer is given, so a person's ID token, too, is taken for one of the cluster"

// verifiedByCluster says that a token goes to a TokenReview.
const verifiedByCluster = "TokenReview"

// Caller is who the gateway takes the caller to be.
type Caller struct {
	Username   string              `json:"username"`
	Kind       string              `json:"kind"`
	UID        string              `json:"uid,omitempty"`
	Groups     []string            `json:"groups,omitempty"`
	Extra      map[string][]string `json:"extra,omitempty"`
	Audiences  []string            `json:"audiences,omitempty"`
	Delegate   bool                `json:"delegate,omitempty"`
	OnBehalfOf string              `json:"onBehalfOf,omitempty"`
}

// DenyList is what the deny-list says of the caller and the person.
type DenyList struct {
	// File is empty when none was given: nobody is denied then.
	File string `json:"file,omitempty"`
	// Entries is how many there are, those that have ended included.
	Entries int `json:"entries"`
	// Denied is absent when nobody is denied.
	Denied *Denied `json:"denied,omitempty"`
}

// Denied is the entry by which a call is refused.
type Denied struct {
	// Kind is user, person or group.
	Kind string `json:"kind"`
	Name string `json:"name"`
	// Reason is the list's own, which no caller is told.
	Reason string `json:"reason,omitempty"`
	Until  string `json:"until,omitempty"`
}

// App is what the app's name leads to.
type App struct {
	Name string `json:"name"`
	// Namespaces are those that exist: none, one or two.
	Namespaces []Namespace `json:"namespaces,omitempty"`
}

// Namespace is one namespace.
type Namespace struct {
	Name string `json:"name"`
	UID  string `json:"uid"`
}

// Manifest is a SubjectAccessReview before it is answered. kubectl takes it.
type Manifest struct {
	metav1.TypeMeta `json:",inline"`
	Spec            authorizationv1.SubjectAccessReviewSpec `json:"spec"`
}

// Review is one question to the API server, in the form that it takes again,
// and its answer.
type Review struct {
	Question Manifest `json:"question"`
	Allowed  bool     `json:"allowed"`
	// Reason is the API server's: with RBAC, the binding that grants.
	Reason          string `json:"reason,omitempty"`
	EvaluationError string `json:"evaluationError,omitempty"`
	// Error says why there is no answer.
	Error string `json:"error,omitempty"`
	// RememberedSeconds is how long authz would answer the same question from
	// memory. 0 is not at all.
	RememberedSeconds int `json:"rememberedSeconds"`
}

// Answer is what the caller gets.
type Answer struct {
	// Allowed says that the call goes on to its backend.
	Allowed bool   `json:"allowed"`
	Status  int    `json:"status,omitempty"`
	Rule    string `json:"rule,omitempty"`
	Message string `json:"message,omitempty"`
	Hint    string `json:"hint,omitempty"`
	// Cause is what no caller is told.
	Cause string `json:"cause,omitempty"`
}

func (c *Call) describe(op *operation.Operation) {
	c.Operation, c.Tier, c.Scope, c.Backend, c.Planned = op.ID, string(op.Tier), string(op.Scope), op.Backend, op.Planned
}

func (r *Report) fill(d *decision.Decision, w *witness, found []namespaces.Resolution) {
	if c := d.Caller; c != nil {
		r.Caller = &Caller{
			Username: c.Username, Kind: string(c.Kind), UID: c.UID, Groups: c.Groups, Extra: c.Extra, Audiences: c.Audiences,
			Delegate: d.Delegate, OnBehalfOf: d.OnBehalfOf,
		}
	}
	if len(found) > 0 { // or it was refused before anybody looked
		r.App = newApp(d.App, found)
	}
	for _, one := range w.all() {
		r.Reviews = append(r.Reviews, newReview(one, d.Operation.Purpose))
	}
	switch {
	case d.Allowed():
		r.Answer.Allowed = true
	case d.Refusal != nil:
		r.refused(d.Refusal)
	default: // no decision is like this, and if one is it is no allow
		r.refused(problem.New(problem.SourceFailed, ""))
	}
}

func (r *Report) refused(p *problem.Error) {
	b := p.Body("")
	r.Answer = Answer{Status: p.Status(), Rule: b.Rule, Message: b.Message, Hint: b.Hint}
	if p.Cause != nil {
		r.Answer.Cause = p.Cause.Error()
	}
}

func newApp(name string, found []namespaces.Resolution) *App {
	a := &App{Name: name}
	for _, ns := range []namespaces.Namespace{found[0].Namespace, found[0].Other} {
		if ns.UID != "" {
			a.Namespaces = append(a.Namespaces, Namespace{Name: ns.Name, UID: ns.UID})
		}
	}
	return a
}

func newReview(a asked, p authn.Purpose) Review {
	out := Review{Allowed: a.status.Allowed && !a.status.Denied, Reason: a.status.Reason, EvaluationError: a.status.EvaluationError}
	out.Question.APIVersion = authorizationv1.SchemeGroupVersion.String()
	out.Question.Kind = "SubjectAccessReview"
	out.Question.Spec = a.spec
	switch {
	case a.err != nil:
		out.Error = a.err.Error()
	case p != authn.ForRead:
	case out.Allowed:
		out.RememberedSeconds = int(review.AllowedTTL.Seconds())
	default:
		out.RememberedSeconds = int(review.DeniedTTL.Seconds())
	}
	return out
}
