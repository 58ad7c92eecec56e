package explain

import (
	"context"
	"sync"

	authorizationv1 "k8s.io/api/authorization/v1"

	"hangar.io/glidepath/authz/review"
)

// witness writes down what the API server is asked about access, and what it
// answers. Of tokens it keeps nothing: an answer about one may quote it.
type witness struct {
	review.API // of which ReviewToken is left as it is

	mu     sync.Mutex
	access []asked
}

type asked struct {
	spec   authorizationv1.SubjectAccessReviewSpec
	status authorizationv1.SubjectAccessReviewStatus
	err    error
}

var _ review.API = (*witness)(nil)

// ReviewAccess passes the question on and keeps it with its answer.
func (w *witness) ReviewAccess(ctx context.Context, s authorizationv1.SubjectAccessReviewSpec) (authorizationv1.SubjectAccessReviewStatus, error) {
	status, err := w.API.ReviewAccess(ctx, s)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.access = append(w.access, asked{s, status, err})
	return status, err
}

func (w *witness) all() []asked {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.access
}
