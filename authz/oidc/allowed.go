package oidc

import (
	"errors"
	"fmt"
	"strings"

	"hangar.io/glidepath/authz/authn"
	"hangar.io/glidepath/internal/problem"
)

// Allowed are the people who may sign in.
//
// Logins compare byte by byte. GitHub does not tell jo from Jo, but RBAC does,
// and so do other providers: two spellings must never become one person here.
type Allowed struct {
	logins map[string]pin
}

// pin ties a login to one account of it. The zero value takes any.
type pin struct{ userID, subject string }

// NewAllowed reads the list. An entry is a login, which lets in whoever has it;
// or a login and the account that it must be of, since a login that was given up
// can be taken by somebody else: login:id=42 compares the user's id at the
// provider behind Dex (federated_claims.user_id), login:sub=… the token's
// subject. All faults are given together.
func NewAllowed(entries []string) (*Allowed, error) {
	a := &Allowed{logins: make(map[string]pin, len(entries))}
	var faults []error
	for _, e := range entries {
		login, p, err := parseEntry(e)
		if err == nil {
			if _, twice := a.logins[login]; twice {
				err = errors.New("stands twice")
			}
		}
		if err != nil {
			faults = append(faults, fmt.Errorf("%q: %w", e, err))
			continue
		}
		a.logins[login] = p
	}
	if len(entries) == 0 {
		faults = append(faults, errors.New("nobody is allowed"))
	}
	return a, errors.Join(faults...)
}

func parseEntry(e string) (login string, p pin, err error) {
	login, by, pinned := strings.Cut(e, ":")
	if !authn.UsableLogin(login) {
		return "", pin{}, errors.New("not a login")
	}
	if !pinned {
		return login, pin{}, nil
	}
	kind, value, _ := strings.Cut(by, "=")
	switch {
	case value == "" || strings.TrimSpace(value) != value:
		return "", pin{}, errors.New("an empty id, or one with spaces around it")
	case kind == "id":
		return login, pin{userID: value}, nil
	case kind == "sub":
		return login, pin{subject: value}, nil
	}
	return "", pin{}, errors.New("an account is named by id= or sub=")
}

// admit returns GP-AUTH-005 unless the person of these verified claims may sign
// in.
func (a *Allowed) admit(c *claims) error {
	p, listed := a.logins[c.Login]
	switch {
	case !listed:
		return problem.Newf(problem.AuthPersonNotAllowed, "%s is not among those who may sign in", c.Login).
			WithHint("ask an operator to add the login to the allowed users, spelled exactly so")
	case p.userID != "" && c.Federation.UserID == "":
		return problem.Newf(problem.AuthPersonNotAllowed, "the ID token does not say which account %s is", c.Login).
			WithHint("sign in with the scope federated:id, as `glidepath login` does")
	case p.userID != "" && p.userID != c.Federation.UserID, p.subject != "" && p.subject != c.Subject:
		return problem.Newf(problem.AuthPersonNotAllowed, "this account of %s is not the one that may sign in", c.Login)
	}
	return nil
}
