package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"hangar.io/glidepath/test/bench/view"
)

// written is when a change was sent to the API server, and when that said that it is made.
type written struct{ sent, made time.Time }

// change makes n changes, one every so often, or as fast as the API server makes them. Each object is changed in its turn,
// and never before its last change is made, so that the changes of an object have their order.
func (l *lives) change(ctx context.Context, n int, every time.Duration) ([]written, error) {
	all, first := make([]written, n), l.next
	l.next += n
	errs := make([]error, len(l.objects))
	began := time.Now()
	each(len(l.objects), func(o int) {
		turn := time.NewTimer(0)
		defer turn.Stop()
		for i := 0; i < n && errs[o] == nil; i++ {
			if (first+i)%len(l.objects) != o {
				continue
			}
			turn.Reset(time.Until(began.Add(time.Duration(i) * every)))
			select {
			case <-ctx.Done():
				errs[o] = context.Cause(ctx)
			case <-turn.C:
				all[i], errs[o] = l.objects[o].write(ctx, first+i)
			}
		}
	})
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("changing objects: %w", err)
	}
	return all, nil
}

func (o looked) write(ctx context.Context, n int) (w written, err error) {
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"%d"}}}`, view.Annotation, n)
	w.sent = time.Now()
	_, err = o.client.Patch(ctx, o.name, types.MergePatchType, patch, metav1.PatchOptions{})
	w.made = time.Now()
	return w, err
}
