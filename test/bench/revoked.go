package bench

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hangar.io/glidepath/internal/fleet"
	"hangar.io/glidepath/test/bench/figures"
)

const rowRevokedRead = "revoked_read_s"

const (
	revokedTrials = 50
	revokedEvery  = 100 * time.Millisecond
	revokedLimit  = 2 * time.Minute
	revokedIn     = "app-gate-api-cicd"
)

// revocation is one way in which a caller loses what it may: its right, its account, or what its token is bound to.
type revocation struct {
	name string
	// bound makes what the token is bound to; nil for nothing but its account.
	bound func(ctx context.Context, w *World, name string) (*authenticationv1.BoundObjectReference, error)
	take  func(ctx context.Context, w *World, name string) error
}

// measureRevoked takes their right or token away from many callers at once while each goes on reading, and gives the longest
// time in which one was still answered.
func measureRevoked(ctx context.Context, w *World) ([]figures.Figure, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, revokedLimit, errors.New("callers are still answered"))
	defer cancel()
	client := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: revokedTrials}}
	defer client.CloseIdleConnections()
	ways := revocations()
	trials := max(w.runs(revokedTrials), len(ways))
	took, errs := make([]time.Duration, trials), make([]error, trials)
	var all sync.WaitGroup
	for i := range trials {
		all.Go(func() { took[i], errs[i] = w.revoke(ctx, client, ways[i%len(ways)], fmt.Sprintf("revoked-%d", i)) })
	}
	all.Wait()
	worst := map[string]time.Duration{}
	for i, d := range took {
		if errs[i] != nil {
			return nil, errs[i]
		}
		name := ways[i%len(ways)].name
		worst[name], worst[""] = max(worst[name], d), max(worst[""], d)
	}
	lines := []figures.Figure{{Name: rowRevokedRead, Value: worst[""].Seconds()}}
	for _, way := range ways {
		lines = append(lines, figures.Figure{Name: "revoked_read_" + way.name + "_s", Value: worst[way.name].Seconds()})
	}
	return lines, nil
}

// revoke makes a caller, has it read, takes away what it has, and gives the time until it was answered last.
func (w *World) revoke(ctx context.Context, client *http.Client, way revocation, name string) (time.Duration, error) {
	token, err := w.newReader(ctx, way, name)
	if err != nil {
		return 0, fmt.Errorf("making a caller: %w", err)
	}
	if _, err := w.poll(ctx, client, token, true); err != nil {
		return 0, fmt.Errorf("waiting until a caller may read: %w", err)
	}
	began := time.Now()
	if err := way.take(ctx, w, name); err != nil {
		return 0, fmt.Errorf("taking away a caller's %s: %w", way.name, err)
	}
	last, err := w.poll(ctx, client, token, false)
	if err != nil {
		return 0, fmt.Errorf("waiting until a caller without its %s is refused: %w", way.name, err)
	}
	return last.Sub(began), nil
}

// newReader makes an account that may read one app, and gives its token.
func (w *World) newReader(ctx context.Context, way revocation, name string) (string, error) {
	if err := w.APIServer.EnsureServiceAccount(ctx, revokedIn, name); err != nil {
		return "", err
	}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: fleet.ReaderRole},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: revokedIn, Name: name}},
	}
	if _, err := w.APIServer.Client.RbacV1().RoleBindings(revokedIn).Create(ctx, binding, metav1.CreateOptions{}); err != nil {
		return "", err
	}
	var spec authenticationv1.TokenRequestSpec
	if way.bound != nil {
		ref, err := way.bound(ctx, w, name)
		if err != nil {
			return "", err
		}
		spec.BoundObjectRef = ref
	}
	r, err := w.APIServer.Client.CoreV1().ServiceAccounts(revokedIn).CreateToken(ctx, name, &authenticationv1.TokenRequest{Spec: spec}, metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	return r.Status.Token, nil
}

// poll reads until the caller is answered, or until it is refused. It gives the beginning of the last call that was answered.
func (w *World) poll(ctx context.Context, client *http.Client, token string, until bool) (last time.Time, err error) {
	tick := time.NewTicker(revokedEvery)
	defer tick.Stop()
	last = time.Now()
	for {
		began := time.Now()
		answered, err := w.mayRead(ctx, client, token)
		if err != nil {
			return last, err
		}
		if answered {
			last = began
		}
		if answered == until {
			return last, nil
		}
		select {
		case <-ctx.Done():
			return last, context.Cause(ctx)
		case <-tick.C:
		}
	}
}

func (w *World) mayRead(ctx context.Context, client *http.Client, token string) (bool, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, w.URL+cachedPath, nil)
	if err != nil {
		return false, err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := client.Do(req)
	if err != nil {
		return false, err
	}
	defer func() { _ = resp.Body.Close() }()
	switch resp.StatusCode {
	case http.StatusOK:
		return true, nil
	case http.StatusUnauthorized, http.StatusForbidden:
		return false, nil
	}
	return false, fmt.Errorf("a reader was answered with %d", resp.StatusCode)
}

func revocations() []revocation {
	now := int64(0)
	at := metav1.DeleteOptions{GracePeriodSeconds: &now}
	return []revocation{
		{name: "binding", take: func(ctx context.Context, w *World, name string) error {
			return w.APIServer.Client.RbacV1().RoleBindings(revokedIn).Delete(ctx, name, at)
		}},
		{name: "account", take: func(ctx context.Context, w *World, name string) error {
			return w.APIServer.Client.CoreV1().ServiceAccounts(revokedIn).Delete(ctx, name, at)
		}},
		{name: "secret", bound: func(ctx context.Context, w *World, name string) (*authenticationv1.BoundObjectReference, error) {
			s, err := w.APIServer.Client.CoreV1().Secrets(revokedIn).Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
			if err != nil {
				return nil, err
			}
			return &authenticationv1.BoundObjectReference{Kind: "Secret", APIVersion: "v1", Name: name, UID: s.UID}, nil
		}, take: func(ctx context.Context, w *World, name string) error {
			return w.APIServer.Client.CoreV1().Secrets(revokedIn).Delete(ctx, name, at)
		}},
		{name: "pod", bound: func(ctx context.Context, w *World, name string) (*authenticationv1.BoundObjectReference, error) {
			p, err := w.APIServer.Client.CoreV1().Pods(revokedIn).Create(ctx, &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Name: name},
				Spec:       corev1.PodSpec{ServiceAccountName: name, Containers: []corev1.Container{{Name: "step", Image: "none"}}},
			}, metav1.CreateOptions{})
			if err != nil {
				return nil, err
			}
			return &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: name, UID: p.UID}, nil
		}, take: func(ctx context.Context, w *World, name string) error {
			return w.APIServer.Client.CoreV1().Pods(revokedIn).Delete(ctx, name, at)
		}},
	}
}
