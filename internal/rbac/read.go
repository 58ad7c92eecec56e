// Package rbac owns manifests of roles and bindings as a proposal: what is in
// files, and a cluster of its own that knows it as a real one would.
package rbac

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	sigsyaml "sigs.k8s.io/yaml"
)

// maxFileBytes bounds one file: a large cluster's roles are a few megabytes.
const maxFileBytes = 64 << 20

// Set is the RBAC of a cluster. Of metadata it keeps names and labels.
type Set struct {
	// Namespaces are those that are named as objects.
	Namespaces          []string
	Roles               []rbacv1.Role
	RoleBindings        []rbacv1.RoleBinding
	ClusterRoles        []rbacv1.ClusterRole
	ClusterRoleBindings []rbacv1.ClusterRoleBinding

	seen map[string]string // where each object stands
}

// Read reads files of YAML or JSON, of one object or many, and lists of objects.
// A folder stands for all such files below it. An object of any other kind than
// those of a Set is an error, and so is one that stands twice.
func Read(paths []string) (*Set, error) {
	s := &Set{seen: map[string]string{}}
	for _, path := range paths {
		files, err := filesOf(path)
		if err != nil {
			return nil, fmt.Errorf("reading manifests: %w", err)
		}
		for _, file := range files {
			if err := s.file(file); err != nil {
				return nil, fmt.Errorf("reading manifests: %s: %w", file, err)
			}
		}
	}
	if len(s.seen) == 0 {
		return nil, errors.New("reading manifests: there is no object in them")
	}
	return s, nil
}

func filesOf(path string) ([]string, error) {
	var files []string
	err := filepath.WalkDir(path, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if !entry.IsDir() && (name == path || slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(name))) {
			files = append(files, name)
		}
		return nil
	})
	return files, err
}

func (s *Set) file(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	raw, err := io.ReadAll(io.LimitReader(f, maxFileBytes+1))
	if err != nil {
		return err
	}
	if len(raw) > maxFileBytes {
		return fmt.Errorf("larger than %d bytes", maxFileBytes)
	}
	documents := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(raw)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := s.document(name, document); err != nil {
			return err
		}
	}
}

// head is what all objects have.
type head struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        struct {
		Name      string            `json:"name"`
		Namespace string            `json:"namespace"`
		Labels    map[string]string `json:"labels"`
	} `json:"metadata"`
}

func (s *Set) document(file string, raw []byte) error {
	var h head
	if err := sigsyaml.Unmarshal(raw, &h); err != nil {
		return err
	}
	switch {
	case h.Kind == "" && h.APIVersion == "":
		var anything map[string]any
		if err := sigsyaml.Unmarshal(raw, &anything); err != nil || len(anything) > 0 {
			return errors.New("a document that is no object")
		}
		return nil // nothing but comments
	case h.Kind == "List" && h.APIVersion == "v1", isRBAC(h.APIVersion) && len(h.Kind) > len("List") && h.Kind[len(h.Kind)-len("List"):] == "List":
		return s.list(file, h, raw)
	}
	return s.object(file, h, raw)
}

func isRBAC(apiVersion string) bool { return apiVersion == rbacv1.SchemeGroupVersion.String() }

// list takes the objects of a list. Those of a typed list do not say their kind.
func (s *Set) list(file string, h head, raw []byte) error {
	var list struct {
		Items []map[string]any `json:"items"`
	}
	if err := sigsyaml.Unmarshal(raw, &list); err != nil {
		return err
	}
	for _, item := range list.Items {
		if h.Kind != "List" {
			item["apiVersion"], item["kind"] = h.APIVersion, h.Kind[:len(h.Kind)-len("List")]
		}
		one, err := sigsyaml.Marshal(item)
		if err != nil {
			return err
		}
		if err := s.document(file, one); err != nil {
			return err
		}
	}
	return nil
}

func (s *Set) object(file string, h head, raw []byte) error {
	what := fmt.Sprintf("%s %s", h.Kind, h.Metadata.Name)
	if h.Metadata.Namespace != "" {
		what += " in " + h.Metadata.Namespace
	}
	if h.Metadata.Name == "" {
		return fmt.Errorf("a %s without a name", h.Kind)
	}
	if first, twice := s.seen[what]; twice {
		return fmt.Errorf("%s stands here and in %s", what, first)
	}
	s.seen[what] = file
	if err := s.typed(h, raw); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

func (s *Set) typed(h head, raw []byte) error {
	meta := metav1.ObjectMeta{Name: h.Metadata.Name, Namespace: h.Metadata.Namespace, Labels: h.Metadata.Labels}
	namespaced := false
	var err error
	switch {
	case h.APIVersion == "v1" && h.Kind == "Namespace":
		s.Namespaces = append(s.Namespaces, h.Metadata.Name)
	case !isRBAC(h.APIVersion):
		return fmt.Errorf("%s is not taken: only Namespaces and the kinds of %s are", h.APIVersion, rbacv1.SchemeGroupVersion)
	case h.Kind == "Role":
		namespaced = true
		s.Roles, err = appended(s.Roles, raw, func(o *rbacv1.Role) { o.ObjectMeta = meta })
	case h.Kind == "RoleBinding":
		namespaced = true
		s.RoleBindings, err = appended(s.RoleBindings, raw, func(o *rbacv1.RoleBinding) { o.ObjectMeta = meta })
	case h.Kind == "ClusterRole":
		s.ClusterRoles, err = appended(s.ClusterRoles, raw, func(o *rbacv1.ClusterRole) { o.ObjectMeta = meta })
	case h.Kind == "ClusterRoleBinding":
		s.ClusterRoleBindings, err = appended(s.ClusterRoleBindings, raw, func(o *rbacv1.ClusterRoleBinding) { o.ObjectMeta = meta })
	default:
		return errors.New("no such kind")
	}
	if err == nil && namespaced != (meta.Namespace != "") {
		return errors.New("a namespace is missing, or is one too many")
	}
	return err
}

func appended[T any](list []T, raw []byte, set func(*T)) ([]T, error) {
	var object T
	if err := sigsyaml.UnmarshalStrict(raw, &object); err != nil {
		return nil, err
	}
	set(&object)
	return append(list, object), nil
}

// AllNamespaces are those that are named as objects or that something is in.
func (s *Set) AllNamespaces() []string {
	names := slices.Clone(s.Namespaces)
	for _, r := range s.Roles {
		names = append(names, r.Namespace)
	}
	for _, b := range s.RoleBindings {
		names = append(names, b.Namespace)
	}
	slices.Sort(names)
	return slices.Compact(names)
}
