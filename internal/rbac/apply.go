package rbac

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
)

const (
	// applyAtOnce bounds the requests under way.
	applyAtOnce = 8
	// knownPoll is how often the cluster is asked whether it knows the roles.
	knownPoll = 50 * time.Millisecond
)

// ownNamespaces are those of every cluster.
var ownNamespaces = []string{"default", "kube-node-lease", "kube-public", "kube-system"}

// CheckScratch says whether a cluster is one that nobody uses: it has the
// namespaces that every cluster has and no others.
func CheckScratch(ctx context.Context, client kubernetes.Interface) error {
	list, err := client.CoreV1().Namespaces().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("looking at the scratch cluster: %w", err)
	}
	for _, ns := range list.Items {
		if !slices.Contains(ownNamespaces, ns.Name) {
			return fmt.Errorf("the cluster is no scratch cluster, it has namespace %s: manifests are applied to an empty one only", ns.Name)
		}
	}
	return nil
}

// Apply makes a scratch cluster hold the set, in place of what it has of the
// same names, and returns when every review there goes by it. It fills roles
// that aggregate others, as a controller does in a whole cluster.
func (s *Set) Apply(ctx context.Context, client kubernetes.Interface) error {
	for _, name := range s.AllNamespaces() {
		_, err := client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("making namespace %s: %w", name, err)
		}
	}
	group, applying := errgroup.WithContext(ctx)
	group.SetLimit(applyAtOnce)
	rbac := client.RbacV1()
	for i := range s.ClusterRoles {
		group.Go(func() error { return put(applying, rbac.ClusterRoles(), &s.ClusterRoles[i]) })
	}
	for i := range s.ClusterRoleBindings {
		group.Go(func() error { return put(applying, rbac.ClusterRoleBindings(), &s.ClusterRoleBindings[i]) })
	}
	for i := range s.Roles {
		group.Go(func() error { return put(applying, rbac.Roles(s.Roles[i].Namespace), &s.Roles[i]) })
	}
	for i := range s.RoleBindings {
		group.Go(func() error { return put(applying, rbac.RoleBindings(s.RoleBindings[i].Namespace), &s.RoleBindings[i]) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	if err := fill(ctx, client); err != nil {
		return err
	}
	return known(ctx, client)
}

// resource is the part of a typed client that put needs.
type resource[T metav1.Object] interface {
	Create(context.Context, T, metav1.CreateOptions) (T, error)
	Delete(context.Context, string, metav1.DeleteOptions) error
}

// put makes an object, in place of one of its name: what a binding refers to
// cannot be changed.
func put[T metav1.Object](ctx context.Context, client resource[T], object T) error {
	_, err := client.Create(ctx, object, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		if err = client.Delete(ctx, object.GetName(), metav1.DeleteOptions{}); err == nil {
			_, err = client.Create(ctx, object, metav1.CreateOptions{})
		}
	}
	if err != nil {
		return fmt.Errorf("applying %T %s: %w", object, object.GetName(), err)
	}
	return nil
}

// fill writes the rules of roles that aggregate others.
func fill(ctx context.Context, client kubernetes.Interface) error {
	list, err := client.RbacV1().ClusterRoles().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("filling aggregated roles: %w", err)
	}
	changed, err := aggregate(list.Items)
	if err != nil {
		return fmt.Errorf("filling aggregated roles: %w", err)
	}
	for i := range list.Items {
		role := &list.Items[i]
		if !changed[role.Name] {
			continue
		}
		if _, err := client.RbacV1().ClusterRoles().Update(ctx, role, metav1.UpdateOptions{}); err != nil {
			return fmt.Errorf("filling aggregated roles: %w", err)
		}
	}
	return nil
}

// known returns when the authorizer of the cluster has seen all of the roles and
// bindings: it watches each of the four kinds in order, so whoever sees the last
// object of each has seen those before.
func known(ctx context.Context, client kubernetes.Interface) error {
	// Never one of an earlier Apply, which would be known already.
	name := "glidepath-last-" + strings.ToLower(rand.Text())
	meta := metav1.ObjectMeta{Name: name, Namespace: metav1.NamespaceDefault}
	rules := func(resource string) []rbacv1.PolicyRule {
		return []rbacv1.PolicyRule{{Verbs: []string{"see"}, APIGroups: []string{name}, Resources: []string{resource}}}
	}
	subjects := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}}
	ref := func(kind string) rbacv1.RoleRef {
		return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: name}
	}
	everywhere := metav1.ObjectMeta{Name: name}
	rbac := client.RbacV1()
	for _, err := range []error{
		put(ctx, rbac.ClusterRoles(), &rbacv1.ClusterRole{ObjectMeta: everywhere, Rules: rules("clusterroles")}),
		put(ctx, rbac.ClusterRoleBindings(), &rbacv1.ClusterRoleBinding{ObjectMeta: everywhere, Subjects: subjects, RoleRef: ref("ClusterRole")}),
		put(ctx, rbac.Roles(meta.Namespace), &rbacv1.Role{ObjectMeta: meta, Rules: rules("roles")}),
		put(ctx, rbac.RoleBindings(meta.Namespace), &rbacv1.RoleBinding{ObjectMeta: meta, Subjects: subjects, RoleRef: ref("Role")}),
	} {
		if err != nil {
			return err
		}
	}
	for _, resource := range []string{"clusterroles", "roles"} {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User:               name,
			ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "see", Group: name, Resource: resource, Namespace: meta.Namespace},
		}}
		err := wait.PollUntilContextCancel(ctx, knownPoll, true, func(ctx context.Context) (bool, error) {
			answer, err := client.AuthorizationV1().SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
			return err == nil && answer.Status.Allowed, err
		})
		if err != nil {
			return fmt.Errorf("waiting until the cluster knows the roles: %w", err)
		}
	}
	return nil
}
