package review

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"

	"hangar.io/glidepath/authz/authn"
	"hangar.io/glidepath/authz/token"
	"hangar.io/glidepath/authz/ttl"
	"hangar.io/glidepath/internal/problem"
)

// How long verdicts on tokens are remembered, and how many.
const (
	// acceptedTTL adds to the 10 s for which the API server itself remembers a
	// good token: a revoked one ends within 20 s.
	acceptedTTL  = 10 * time.Second
	acceptedSize = 8192
	// acceptedBytes bounds the facts of their callers: a caller may be in
	// thousands of groups. Without those it is a kilobyte.
	acceptedBytes = 32 << 20
	// Refused tokens are apart from accepted ones, so that a flood of made-up
	// tokens evicts made-up tokens alone.
	refusedTTL  = 3 * time.Second
	refusedSize = 1024
)

// FillTimeout bounds a question that several callers share.
const FillTimeout = 2 * time.Second

// Tokens authenticates tokens by TokenReview. It is an authn.Authenticator.
type Tokens struct {
	api       API
	slots     *Slots
	metrics   *Metrics
	audiences []string
	keys      *token.Keyer
	screen    Screen // nil for none

	accepted *ttl.Cache[token.Key, *authn.Caller]
	refused  *ttl.Cache[token.Key, *problem.Error]
	group    *ttl.Group[token.Key, *authn.Caller]
}

// NewTokens gives an authenticator that asks api. A token must be for one of
// the audiences; without any, for the API server's own. Close it when done.
func NewTokens(api API, s *Slots, m *Metrics, audiences []string) (*Tokens, error) {
	accepted, err := ttl.NewWeighedCache[token.Key](acceptedSize, acceptedBytes, (*authn.Caller).Bytes)
	if err != nil {
		return nil, err
	}
	refused, err := ttl.NewCache[token.Key, *problem.Error](refusedSize)
	if err != nil {
		return nil, err
	}
	if err := m.keeps(accepted.Entries(kindToken), refused.Entries(kindToken+"-refused")); err != nil {
		return nil, err
	}
	return &Tokens{
		api: api, slots: s, metrics: m, audiences: slices.Clone(audiences), keys: token.NewKeyer(),
		accepted: accepted, refused: refused,
		group: ttl.NewGroup[token.Key, *authn.Caller](FillTimeout),
	}, nil
}

// ScreenBy has s look at each token that was not accepted here before, ahead of
// the cluster. Call it before the first token comes.
func (t *Tokens) ScreenBy(s Screen) { t.screen = s }

// Close ends the questions under way and waits for them.
func (t *Tokens) Close() { t.group.Close() }

// Authenticate says whose token tok is.
func (t *Tokens) Authenticate(ctx context.Context, tok token.Token, p authn.Purpose) (*authn.Caller, error) {
	key := t.keys.Key(tok)
	if p != authn.ForRead {
		t.metrics.tokens.bypass.Inc()
		c, err := t.ask(ctx, key, tok, p)
		if err == nil && !t.accepted.Known(key) {
			// Known from now on, and answered from memory never: its time is
			// over already. A caller that only writes is no made-up token.
			t.accepted.Put(key, c, time.Time{})
		}
		return c, err
	}
	now := time.Now()
	if c, ok := t.recall(key, now); ok {
		return c, nil
	}
	if err, ok := t.refused.Get(key, now); ok {
		t.metrics.tokens.refused.Inc()
		return nil, err
	}
	c, joined, err := t.group.Do(ctx, key, func(ctx context.Context) (*authn.Caller, error) {
		return t.fill(ctx, key, tok)
	})
	t.metrics.tokens.count(joined)
	if err != nil {
		return nil, unanswered("the token could not be reviewed", err)
	}
	return c, nil
}

// Remembered says whose token tok is, as authn.Memory has it.
func (t *Tokens) Remembered(tok token.Token) (*authn.Caller, bool) {
	return t.recall(t.keys.Key(tok), time.Now())
}

func (t *Tokens) recall(key token.Key, now time.Time) (*authn.Caller, bool) {
	c, ok := t.accepted.Get(key, now)
	if ok {
		t.metrics.tokens.hit.Inc()
	}
	return c, ok
}

// fill asks for a read and remembers the verdict from the moment of asking.
func (t *Tokens) fill(ctx context.Context, key token.Key, tok token.Token) (*authn.Caller, error) {
	start := time.Now()
	if c, ok := t.accepted.Get(key, start); ok {
		return c, nil // another fill ended between the look-up and this one
	}
	c, err := t.ask(ctx, key, tok, authn.ForRead)
	if refusal, ok := isRefusal(err); ok && !errors.As(err, new(*screened)) {
		t.refused.Put(key, refusal, start.Add(refusedTTL))
	}
	if err != nil {
		return nil, err
	}
	end := start.Add(acceptedTTL)
	if exp := tok.Unverified().Expiry; !exp.IsZero() && exp.Before(end) {
		end = exp
	}
	t.accepted.Put(key, c, end)
	return c, nil
}

// ask makes one TokenReview. A refusal ends what was remembered of the token.
func (t *Tokens) ask(ctx context.Context, key token.Key, tok token.Token, p authn.Purpose) (*authn.Caller, error) {
	class, accepted, err := t.admit(ctx, key, tok, p)
	if err != nil {
		return nil, err
	}
	if err := t.slots.take(ctx, class); err != nil {
		return nil, unanswered("the token could not be reviewed", err)
	}
	defer t.slots.give(class)
	start := time.Now()
	status, err := t.api.ReviewToken(ctx, authenticationv1.TokenReviewSpec{
		Token: tok.Secret(), Audiences: t.audiences,
	})
	if err != nil {
		t.metrics.asked(kindToken, resultFailed, start)
		return nil, unanswered("the token could not be reviewed", err)
	}
	c, err := t.judge(status)
	if err != nil {
		t.metrics.asked(kindToken, resultRefused, start)
		t.accepted.Drop(key)
		// Says nothing of why: a webhook's error text may quote the token.
		return nil, problem.New(problem.AuthBadToken, "the cluster did not accept the token").WithCause(err)
	}
	t.metrics.asked(kindToken, resultAccepted, start)
	if accepted != nil {
		accepted()
	}
	return c, nil
}

// judge says who the status names, or why nobody.
func (t *Tokens) judge(s authenticationv1.TokenReviewStatus) (*authn.Caller, error) {
	switch {
	case !s.Authenticated:
		return nil, errors.New("not authenticated")
	case s.Error != "":
		return nil, errors.New("authenticated, but with an error")
	case len(t.audiences) > 0 && !t.shares(s.Audiences):
		// An authenticator that knows no audiences leaves them empty: such a
		// token is for the API server alone.
		return nil, errors.New("for other audiences")
	}
	c, err := authn.NewClusterCaller(authn.Facts{
		Username: s.User.Username, UID: s.User.UID, Groups: s.User.Groups,
		Extra: plain(s.User.Extra), Audiences: s.Audiences,
	})
	if err != nil {
		return nil, fmt.Errorf("unusable user: %w", err)
	}
	return c, nil
}

func (t *Tokens) shares(audiences []string) bool {
	return slices.ContainsFunc(audiences, func(a string) bool { return slices.Contains(t.audiences, a) })
}

func plain(extra map[string]authenticationv1.ExtraValue) map[string][]string {
	out := make(map[string][]string, len(extra))
	for k, v := range extra {
		out[k] = v
	}
	return out
}

func isRefusal(err error) (*problem.Error, bool) {
	p, ok := errors.AsType[*problem.Error](err)
	if !ok || p.Rule.ID != problem.AuthBadToken.ID {
		return nil, false
	}
	return p, true
}
