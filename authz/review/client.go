package review

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"

	"hangar.io/glidepath/internal/kube"
)

// maxAnswerBytes bounds what is read of an answer. A review echoes the token
// and lists groups: kilobytes.
const maxAnswerBytes = 1 << 20

// API asks the API server. Its errors say that there is no answer; what the
// answer is, is in the status.
type API interface {
	// ReviewToken makes a TokenReview.
	ReviewToken(context.Context, authenticationv1.TokenReviewSpec) (authenticationv1.TokenReviewStatus, error)
	// ReviewAccess makes a SubjectAccessReview.
	ReviewAccess(context.Context, authorizationv1.SubjectAccessReviewSpec) (authorizationv1.SubjectAccessReviewStatus, error)
}

// Client is the API of a real API server.
type Client struct {
	http           *http.Client
	tokens, access string
}

// NewClient gives a client for the API server of cfg. Close it when done.
func NewClient(cfg *rest.Config) (*Client, error) {
	client, base, err := kube.HTTP(cfg)
	if err != nil {
		return nil, err
	}
	return &Client{
		http:   client,
		tokens: base.JoinPath("/apis/authentication.k8s.io/v1/tokenreviews").String(),
		access: base.JoinPath("/apis/authorization.k8s.io/v1/subjectaccessreviews").String(),
	}, nil
}

// Close drops idle connections.
func (c *Client) Close() { utilnet.CloseIdleConnectionsFor(c.http.Transport) }

// ReviewToken makes a TokenReview.
func (c *Client) ReviewToken(ctx context.Context, spec authenticationv1.TokenReviewSpec) (authenticationv1.TokenReviewStatus, error) {
	kind := metav1.TypeMeta{APIVersion: authenticationv1.SchemeGroupVersion.String(), Kind: "TokenReview"}
	var out authenticationv1.TokenReview
	if err := c.post(ctx, c.tokens, kind, &authenticationv1.TokenReview{Spec: spec}, &out); err != nil {
		return authenticationv1.TokenReviewStatus{}, fmt.Errorf("reviewing a token: %w", err)
	}
	return out.Status, nil
}

// ReviewAccess makes a SubjectAccessReview.
func (c *Client) ReviewAccess(ctx context.Context, spec authorizationv1.SubjectAccessReviewSpec) (authorizationv1.SubjectAccessReviewStatus, error) {
	kind := metav1.TypeMeta{APIVersion: authorizationv1.SchemeGroupVersion.String(), Kind: "SubjectAccessReview"}
	var out authorizationv1.SubjectAccessReview
	if err := c.post(ctx, c.access, kind, &authorizationv1.SubjectAccessReview{Spec: spec}, &out); err != nil {
		return authorizationv1.SubjectAccessReviewStatus{}, fmt.Errorf("reviewing access: %w", err)
	}
	return out.Status, nil
}

// post sends one review and reads its answer. Its errors never hold what was
// sent or what came back: both can hold the token.
func (c *Client) post(ctx context.Context, url string, kind metav1.TypeMeta, in, out message) error {
	body, err := encode(kind, in)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("making the request: %w", err)
	}
	req.Header.Set("Content-Type", protobufType)
	req.Header.Set("Accept", protobufType+","+jsonType)
	// Reviews change nothing, so the transport may send one again that met a
	// connection which had just gone. The empty value says so and is not sent.
	req.Header["X-Idempotency-Key"] = []string{}
	resp, err := c.http.Do(req)
	if err != nil {
		return err // names the method and the URL already
	}
	defer func() {
		// What is left of a body keeps its connection from being used again.
		_, _ = io.CopyN(io.Discard, resp.Body, maxAnswerBytes)
		_ = resp.Body.Close()
	}()
	if resp.StatusCode == http.StatusTooManyRequests {
		return newBusy(resp.Header)
	}
	if resp.StatusCode != http.StatusCreated && resp.StatusCode != http.StatusOK {
		return fmt.Errorf("the API server answered %s", resp.Status)
	}
	var raw bytes.Buffer
	raw.Grow(int(min(max(resp.ContentLength, 0), maxAnswerBytes)) + bytes.MinRead) // so that it is read in one piece
	if _, err := raw.ReadFrom(io.LimitReader(resp.Body, maxAnswerBytes+1)); err != nil {
		return fmt.Errorf("reading the answer: %w", err)
	}
	if raw.Len() > maxAnswerBytes {
		return fmt.Errorf("the answer is larger than %d bytes", maxAnswerBytes)
	}
	return decode(raw.Bytes(), kind, out)
}
