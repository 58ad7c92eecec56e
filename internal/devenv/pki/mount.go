package pki

import (
	"crypto/rand"
	"fmt"
	"maps"
	"os"
	"path/filepath"
)

// Mount is a folder laid out as the kubelet lays out a Secret: each file is a link through the link ..data into a folder of
// one generation, and a new generation comes into force by one rename of ..data. It is for one goroutine.
type Mount struct {
	Dir   string
	files map[string][]byte
}

// dataLink is the link that the kubelet swaps.
const dataLink = "..data"

// NewMount makes dir, when it is missing, with the files in it.
func NewMount(dir string, files map[string][]byte) (*Mount, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("mounting %s: %w", dir, err)
	}
	m := &Mount{Dir: dir}
	if err := m.Set(files); err != nil {
		return nil, err
	}
	return m, nil
}

// File is the path of one file.
func (m *Mount) File(name string) string { return filepath.Join(m.Dir, name) }

// Set swaps in a new generation with these files. Files of the one before that are not among them are gone.
func (m *Mount) Set(files map[string][]byte) error {
	generation := "..gen_" + rand.Text()
	if err := m.swap(generation, files); err != nil {
		return fmt.Errorf("mounting %s: %w", m.Dir, err)
	}
	return nil
}

func (m *Mount) swap(generation string, files map[string][]byte) error {
	if err := os.Mkdir(filepath.Join(m.Dir, generation), 0o700); err != nil {
		return err
	}
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(m.Dir, generation, name), data, 0o600); err != nil {
			return err
		}
	}
	before, err := os.Readlink(m.File(dataLink))
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	next := m.File(dataLink + "_tmp")
	if err := os.Symlink(generation, next); err != nil {
		return err
	}
	if err := os.Rename(next, m.File(dataLink)); err != nil {
		return err
	}
	for name := range files {
		if err := os.Symlink(filepath.Join(dataLink, name), m.File(name)); err != nil && !os.IsExist(err) {
			return err
		}
	}
	for name := range m.files {
		if _, still := files[name]; !still {
			if err := os.Remove(m.File(name)); err != nil {
				return err
			}
		}
	}
	m.files = maps.Clone(files)
	if before == "" {
		return nil
	}
	return os.RemoveAll(m.File(before))
}
