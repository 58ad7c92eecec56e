package containers

import (
	"archive/tar"
	"bytes"
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"

	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
)

// Image says what an image holds: the program, and what that loads. There is nothing else in it.
type Image struct {
	Name    string // of the image, without a tag
	Program string // path of the program on this machine; in the image it is at /Name
}

// Build makes the image and gives the reference that Run takes.
func (d *Docker) Build(ctx context.Context, image Image) (string, error) {
	files, err := filesOf(ctx, image)
	if err != nil {
		return "", fmt.Errorf("building an image of %s: %w", image.Program, err)
	}
	archive, err := archiveOf(image, files)
	if err != nil {
		return "", fmt.Errorf("building an image of %s: %w", image.Program, err)
	}
	provider, err := testcontainers.NewDockerProvider(testcontainers.WithLogger(quiet{}))
	if err != nil {
		return "", fmt.Errorf("building an image of %s: %w", image.Program, err)
	}
	defer provider.Close()
	built, err := provider.BuildImage(ctx, &testcontainers.ContainerRequest{FromDockerfile: testcontainers.FromDockerfile{
		ContextArchive: bytes.NewReader(archive), Repo: "glidepath-test/" + image.Name, Tag: d.owner.id(), KeepImage: true,
		BuildOptionsModifier: func(o *client.ImageBuildOptions) { o.Labels, o.Version = d.labels(), "1" },
	}})
	if err != nil {
		return "", fmt.Errorf("building an image of %s: %w", image.Program, err)
	}
	return built, nil
}

// filesOf maps paths in the image to files of this machine.
func filesOf(ctx context.Context, image Image) (map[string]string, error) {
	files := map[string]string{"/" + image.Name: image.Program}
	loader, err := loaderOf(image.Program)
	if err != nil || loader == "" {
		return files, err
	}
	files[loader] = loader
	out, err := exec.CommandContext(ctx, loader, "--list", image.Program).Output()
	if err != nil {
		return nil, fmt.Errorf("asking %s for libraries: %w", loader, err)
	}
	for _, match := range library.FindAllStringSubmatch(string(out), -1) {
		files[match[1]] = match[1]
	}
	return files, nil
}

// library finds the path of a library in a line of the loader's list: libm.so.6 => /lib/libm.so.6 (0x...).
var library = regexp.MustCompile(`=> (/\S+) \(0x`)

// loaderOf gives the loader that a program names, "" for a static one.
func loaderOf(program string) (string, error) {
	f, err := elf.Open(program)
	if err != nil {
		return "", fmt.Errorf("reading a program: %w", err)
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type != elf.PT_INTERP {
			continue
		}
		name, err := io.ReadAll(io.LimitReader(p.Open(), 4096))
		if err != nil {
			return "", fmt.Errorf("reading a program: %w", err)
		}
		return strings.TrimRight(string(name), "\x00"), nil
	}
	return "", nil
}

// archiveOf is the context of a build: the files below root, and how to put them into the image.
func archiveOf(image Image, files map[string]string) ([]byte, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	dockerfile := fmt.Sprintf("FROM scratch\nCOPY root/ /\nENTRYPOINT [%q]\n", "/"+image.Name)
	if err := add(w, "Dockerfile", 0o600, []byte(dockerfile)); err != nil {
		return nil, err
	}
	for _, path := range slices.Sorted(maps.Keys(files)) {
		content, err := os.ReadFile(files[path])
		if err != nil {
			return nil, err
		}
		if err := add(w, "root"+path, 0o755, content); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("packing an image: %w", err)
	}
	return out.Bytes(), nil
}

func add(w *tar.Writer, name string, mode int64, content []byte) error {
	header := &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode, Size: int64(len(content))}
	if err := w.WriteHeader(header); err != nil {
		return fmt.Errorf("packing %s: %w", name, err)
	}
	if _, err := w.Write(content); err != nil {
		return fmt.Errorf("packing %s: %w", name, err)
	}
	return nil
}

// Files lists what a container holds but for what Docker itself puts into every one: empty files and folders to mount on.
func (c *Container) Files(ctx context.Context) ([]string, error) {
	export, err := c.docker.client.ContainerExport(ctx, c.id, client.ContainerExportOptions{})
	if err != nil {
		return nil, fmt.Errorf("exporting %s: %w", c.name, err)
	}
	defer export.Close()
	var files []string
	for r := tar.NewReader(export); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files, nil
		}
		if err != nil {
			return nil, fmt.Errorf("exporting %s: %w", c.name, err)
		}
		if h.Typeflag == tar.TypeReg && h.Size > 0 {
			files = append(files, "/"+strings.TrimPrefix(h.Name, "/"))
		}
	}
}

// quiet drops what the library tells of its steps.
type quiet struct{}

func (quiet) Printf(string, ...any) {}
