package parts

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"hangar.io/glidepath/test/bench/load"
)

// ReviewSpec says which two reviews to make again and again: of a token, and of the access of whom the first one named. It
// holds the token, so it travels on standard input.
type ReviewSpec struct {
	Kubeconfig  string
	Token       string
	Access      authorizationv1.ResourceAttributes
	Connections int // pairs of reviews under way at once
	Duration    time.Duration
}

// Reviews makes the reviews with a bare client: the transport that client-go makes of the kubeconfig, JSON, and nothing that
// keeps an answer. Each pair of reviews is one answer of the result, and a sampled trace, as each write through the edge is: an
// API server does more for a request that has one.
func Reviews(ctx context.Context, s ReviewSpec) (load.Result, error) {
	var r load.Result
	cpu, err := call(ctx, partReviews, s, &r)
	if err != nil {
		return r, err
	}
	r.CPU = cpu
	return r, r.Err()
}

func reviewsMain(ctx context.Context, in io.Reader, out io.Writer) error {
	var s ReviewSpec
	if err := json.NewDecoder(in).Decode(&s); err != nil {
		return fmt.Errorf("reading what to review: %w", err)
	}
	cfg, err := clientcmd.BuildConfigFromFlags("", s.Kubeconfig)
	if err != nil {
		return fmt.Errorf("reading the kubeconfig: %w", err)
	}
	transport, err := rest.TransportFor(cfg)
	if err != nil {
		return fmt.Errorf("connecting to the API server: %w", err)
	}
	c := &reviewer{spec: s, base: cfg.Host, http: &http.Client{Transport: transport, Timeout: 10 * time.Second}}
	return json.NewEncoder(out).Encode(c.run(ctx))
}

type reviewer struct {
	spec ReviewSpec
	base string
	http *http.Client
}

func (c *reviewer) run(ctx context.Context) load.Result {
	answered := make([]int, c.spec.Connections)
	var (
		warm, all sync.WaitGroup
		mu        sync.Mutex
		r         = load.Result{Failures: map[string]int{}}
	)
	fail := func(err error) {
		mu.Lock()
		defer mu.Unlock()
		r.Failures[err.Error()]++
	}
	warm.Add(c.spec.Connections)
	for i := range answered {
		all.Go(func() {
			if err := c.both(ctx); err != nil {
				fail(err)
			}
			warm.Done()
			warm.Wait()
			for end := time.Now().Add(c.spec.Duration); ctx.Err() == nil && time.Now().Before(end); {
				if err := c.both(ctx); err != nil {
					fail(err)
					continue
				}
				answered[i]++
			}
		})
	}
	warm.Wait()
	begun := time.Now()
	all.Wait()
	r.Elapsed = time.Since(begun)
	for _, n := range answered {
		r.Answered += n
	}
	r.Sent = r.Answered + c.spec.Connections
	return r
}

// both makes the two reviews, the second about whom the first one named.
func (c *reviewer) both(ctx context.Context) error {
	tokens := authenticationv1.TokenReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "authentication.k8s.io/v1", Kind: "TokenReview"},
		Spec:     authenticationv1.TokenReviewSpec{Token: c.spec.Token},
	}
	trace := fmt.Sprintf("00-%016x%016x-%016x-01", rand.Uint64(), rand.Uint64(), rand.Uint64()|1) //nolint:gosec // an id, and no secret
	if err := c.post(ctx, "/apis/authentication.k8s.io/v1/tokenreviews", trace, &tokens); err != nil {
		return err
	}
	user, attributes := tokens.Status.User, c.spec.Access // a copy: the answer is read into it
	access := authorizationv1.SubjectAccessReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "authorization.k8s.io/v1", Kind: "SubjectAccessReview"},
		Spec: authorizationv1.SubjectAccessReviewSpec{
			User: user.Username, UID: user.UID, Groups: user.Groups, Extra: map[string]authorizationv1.ExtraValue{},
			ResourceAttributes: &attributes,
		},
	}
	for k, v := range user.Extra {
		access.Spec.Extra[k] = authorizationv1.ExtraValue(v)
	}
	if err := c.post(ctx, "/apis/authorization.k8s.io/v1/subjectaccessreviews", trace, &access); err != nil {
		return err
	}
	if !tokens.Status.Authenticated || !access.Status.Allowed {
		return fmt.Errorf("authenticated %t, allowed %t", tokens.Status.Authenticated, access.Status.Allowed)
	}
	return nil
}

// post sends a review and reads the answer into it. Errors hold no body: it may quote the token.
func (c *reviewer) post(ctx context.Context, path, trace string, review any) error {
	body, err := json.Marshal(review)
	if err != nil {
		return fmt.Errorf("writing a review: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Traceparent", trace)
	resp, err := c.http.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		return fmt.Errorf("reading a review: %w", err)
	}
	if resp.StatusCode != http.StatusCreated {
		return fmt.Errorf("status %d", resp.StatusCode)
	}
	if err := json.Unmarshal(raw, review); err != nil {
		return fmt.Errorf("status %d, and no review", resp.StatusCode)
	}
	return nil
}
