package review

import (
	"context"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"

	"hangar.io/glidepath/authz/authn"
	"hangar.io/glidepath/authz/ttl"
)

// How long verdicts on access are remembered for reads. Those of writes are not.
const (
	AllowedTTL = 10 * time.Second
	DeniedTTL  = 5 * time.Second
)

const accessSize = 16384

// Right is what a caller may or may not do.
type Right struct {
	Verb, Group, Resource, Subresource string
	// Namespace is empty for the right in every namespace.
	Namespace string
}

// accessKey holds the whole question: the caller's part as a digest of user,
// uid, groups and extra, the rest as it is.
type accessKey struct {
	subject authn.Digest
	right   Right
}

// Access asks what callers may do, by SubjectAccessReview.
type Access struct {
	api     API
	slots   *Slots
	metrics *Metrics

	decided *ttl.Cache[accessKey, bool]
	group   *ttl.Group[accessKey, bool]
}

// NewAccess gives an Access that asks api. Close it when done.
func NewAccess(api API, s *Slots, m *Metrics) (*Access, error) {
	decided, err := ttl.NewCache[accessKey, bool](accessSize)
	if err != nil {
		return nil, err
	}
	if err := m.keeps(decided.Entries(kindAccess)); err != nil {
		return nil, err
	}
	return &Access{
		api: api, slots: s, metrics: m, decided: decided,
		group: ttl.NewGroup[accessKey, bool](FillTimeout),
	}, nil
}

// Close ends the questions under way and waits for them.
func (a *Access) Close() { a.group.Close() }

// Allowed says whether the caller has the right. An error is GP-API-502, and
// then nobody knows.
func (a *Access) Allowed(ctx context.Context, c *authn.Caller, r Right, p authn.Purpose) (bool, error) {
	if p != authn.ForRead {
		a.metrics.access.bypass.Inc()
		return a.ask(ctx, c, r, write)
	}
	key := accessKey{subject: c.Subject(), right: r}
	if allowed, ok := a.decided.Get(key, time.Now()); ok {
		if allowed {
			a.metrics.access.hit.Inc()
		} else {
			a.metrics.access.refused.Inc()
		}
		return allowed, nil
	}
	allowed, joined, err := a.group.Do(ctx, key, func(ctx context.Context) (bool, error) {
		return a.fill(ctx, key, c)
	})
	a.metrics.access.count(joined)
	if err != nil {
		return false, unanswered("access could not be reviewed", err)
	}
	return allowed, nil
}

// fill asks for a read and remembers the verdict from the moment of asking.
func (a *Access) fill(ctx context.Context, key accessKey, c *authn.Caller) (bool, error) {
	start := time.Now()
	if allowed, ok := a.decided.Get(key, start); ok {
		return allowed, nil // another fill ended between the look-up and this one
	}
	allowed, err := a.ask(ctx, c, key.right, read)
	if err != nil {
		return false, err
	}
	keep := DeniedTTL
	if allowed {
		keep = AllowedTTL
	}
	a.decided.Put(key, allowed, start.Add(keep))
	return allowed, nil
}

// ask makes one SubjectAccessReview.
func (a *Access) ask(ctx context.Context, c *authn.Caller, r Right, class class) (bool, error) {
	if err := a.slots.take(ctx, class); err != nil {
		return false, unanswered("access could not be reviewed", err)
	}
	defer a.slots.give(class)
	start := time.Now()
	status, err := a.api.ReviewAccess(ctx, spec(c, r))
	if err != nil {
		a.metrics.asked(kindAccess, resultFailed, start)
		return false, unanswered("access could not be reviewed", err)
	}
	// An evaluation error may come with either verdict and changes none.
	if !status.Allowed || status.Denied {
		a.metrics.asked(kindAccess, resultRefused, start)
		return false, nil
	}
	a.metrics.asked(kindAccess, resultAccepted, start)
	return true, nil
}

func spec(c *authn.Caller, r Right) authorizationv1.SubjectAccessReviewSpec {
	s := authorizationv1.SubjectAccessReviewSpec{
		User: c.Username, UID: c.UID, Groups: c.Groups,
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: r.Namespace, Verb: r.Verb, Group: r.Group,
			Resource: r.Resource, Subresource: r.Subresource,
		},
	}
	if len(c.Extra) > 0 {
		s.Extra = make(map[string]authorizationv1.ExtraValue, len(c.Extra))
		for k, v := range c.Extra {
			s.Extra[k] = v
		}
	}
	return s
}
