package explain

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"hangar.io/glidepath/internal/terminal"
)

// Text is the report for people. The reviews in it stand as they can be given
// to kubectl.
func (r *Report) Text() (string, error) {
	t := new(text)
	t.call(&r.Call)
	t.token(r.Token)
	t.caller(r.Caller)
	t.denyList(r.DenyList)
	if r.App != nil {
		t.app(r.App)
	}
	for i := range r.Reviews {
		if err := t.review(i+1, &r.Reviews[i]); err != nil {
			return "", err
		}
	}
	t.answer(&r.Call, &r.Answer)
	return t.String(), nil
}

// Manifests are the questions to the API server, for kubectl create -f -.
func (r *Report) Manifests() ([]byte, error) {
	var out []byte
	for i := range r.Reviews {
		raw, err := terminal.YAML(r.Reviews[i].Question)
		if err != nil {
			return nil, fmt.Errorf("writing a review: %w", err)
		}
		if i > 0 {
			out = append(out, "---\n"...)
		}
		out = append(out, raw...)
	}
	return out, nil
}

// text collects lines: a word for the step, and what is said of it. Much of that
// are words of others, in tokens and in answers, which are quoted where they
// are not plain.
type text struct{ strings.Builder }

func (t *text) line(label, format string, args ...any) {
	for i, arg := range args {
		if s, ok := arg.(string); ok {
			args[i] = terminal.Line(s)
		}
	}
	fmt.Fprintf(t, "%-12s%s\n", label, fmt.Sprintf(format, args...))
}

// set is line for what may be missing.
func (t *text) set(label, value string) {
	if value != "" {
		t.line("", "%-11s%s", label, value)
	}
}

func (t *text) call(c *Call) {
	t.line("call", "%s %s", c.Method, c.Target)
	if c.Operation == "" {
		return
	}
	about := map[string]string{"self": "about the caller", "app": "about one app", "fleet": "about the fleet, or with app= about one app"}
	t.line("operation", "%s, %s, %s, answered by %s", c.Operation, c.Tier, about[c.Scope], c.Backend)
	if c.Planned {
		t.line("", "No gateway serves it yet: a call that is allowed is answered GP-EDGE-404.")
	}
}

func (t *text) token(k *Token) {
	if k == nil {
		t.line("token", "none")
		return
	}
	t.line("token", "%s", k.Source)
	if k.Header != "" {
		t.set("header", k.Header)
	}
	t.set("issuer", unverified(k.Issuer))
	t.set("expires", unverified(k.Expires))
	t.set("verified", "by "+k.VerifiedBy)
	t.set("note", k.Note)
}

func unverified(claim string) string {
	if claim == "" {
		return ""
	}
	return claim + " (the token says so)"
}

func (t *text) caller(c *Caller) {
	if c == nil {
		t.line("caller", "nobody")
		return
	}
	t.line("caller", "%s (%s)", c.Username, c.Kind)
	t.set("uid", c.UID)
	t.set("groups", strings.Join(c.Groups, ", "))
	for _, k := range slices.Sorted(maps.Keys(c.Extra)) {
		t.set("extra", k+": "+strings.Join(c.Extra[k], ", "))
	}
	t.set("audiences", strings.Join(c.Audiences, ", "))
	if c.Delegate {
		t.set("delegate", "yes")
	}
	t.set("for", c.OnBehalfOf)
}

func (t *text) denyList(d *DenyList) {
	switch {
	case d == nil:
		return
	case d.File == "":
		t.line("deny-list", "none is given, so nobody is denied")
		return
	case d.Denied == nil:
		t.line("deny-list", "%s: neither the caller nor the person is denied (entries: %d)", d.File, d.Entries)
		return
	}
	t.line("deny-list", "%s: denied as the %s %s", d.File, d.Denied.Kind, d.Denied.Name)
	t.set("reason", d.Denied.Reason)
	t.set("until", d.Denied.Until)
}

func (t *text) app(a *App) {
	var names []string
	for _, ns := range a.Namespaces {
		names = append(names, fmt.Sprintf("%s (uid %s)", ns.Name, ns.UID))
	}
	if len(names) == 0 {
		names = []string{"no namespace"}
	}
	t.line("app", "%s: %s", a.Name, strings.Join(names, " and "))
}

func (t *text) review(n int, r *Review) error {
	verdict := "refused"
	switch {
	case r.Error != "":
		verdict = "no answer: " + r.Error
	case r.Allowed:
		verdict = "allowed"
	}
	t.line("review "+fmt.Sprint(n), "%s", verdict)
	switch {
	case r.Reason != "":
		t.set("because", r.Reason)
	case r.Error == "" && !r.Allowed:
		t.set("because", "the API server gives no reason: with RBAC, no binding grants it")
	}
	t.set("but", r.EvaluationError)
	kept := "never: each call asks anew"
	if r.RememberedSeconds > 0 {
		kept = fmt.Sprintf("%d s at most, in each authz", r.RememberedSeconds)
	}
	t.set("remembered", kept)
	raw, err := terminal.YAML(r.Question)
	if err != nil {
		return fmt.Errorf("writing a review: %w", err)
	}
	fmt.Fprintf(t, "---\n%s---\n", raw)
	return nil
}

func (t *text) answer(c *Call, a *Answer) {
	switch {
	case a.Allowed && c.Planned:
		t.line("answer", "allowed, and GP-EDGE-404 until a gateway serves it")
		return
	case a.Allowed:
		t.line("answer", "allowed: the call goes on to %s", c.Backend)
		return
	}
	t.line("answer", "%d %s: %s", a.Status, a.Rule, a.Message)
	t.set("hint", a.Hint)
	t.set("cause", a.Cause)
}
