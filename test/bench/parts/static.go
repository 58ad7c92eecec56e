package parts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Slow is how long the static backend takes over a path that ends in /previews.
const Slow = 250 * time.Millisecond

// Variant is one form of a list: the bytes, and the headers with which the backend that is compared sends them.
type Variant struct {
	Body                  []byte
	ETag, ContentEncoding string
}

// The files of an app's list in a folder.
func variantFile(dir, app, encoding string) string {
	return filepath.Join(dir, "list-"+app+"-"+encoding)
}

// StaticPath is the path of the list that PutList gave the static backend for an app.
func StaticPath(app string) string { return "/v1/apps/" + app + "/environments" }

// PutList gives the static backend of dir the list that it serves at an app's StaticPath. It reads the list when it is first
// asked for it, so the list is put before.
func PutList(dir, app string, plain, gzip Variant) error {
	for encoding, v := range map[string]Variant{"identity": plain, "gzip": gzip} {
		if err := os.WriteFile(variantFile(dir, app, encoding), append([]byte(v.ETag+"\n"), v.Body...), 0o600); err != nil {
			return fmt.Errorf("putting the list: %w", err)
		}
	}
	return nil
}

func readVariant(dir, app, encoding string) (Variant, error) {
	raw, err := os.ReadFile(variantFile(dir, app, encoding))
	if err != nil {
		return Variant{}, err
	}
	etag, body, ok := strings.Cut(string(raw), "\n")
	if !ok {
		return Variant{}, fmt.Errorf("%s: no tag", variantFile(dir, app, encoding))
	}
	v := Variant{Body: []byte(body), ETag: etag}
	if encoding == "gzip" {
		v.ContentEncoding = encoding
	}
	return v, nil
}

// lists are those of apps, each read once.
type lists struct {
	dir string

	mu  sync.Mutex
	all map[string][2]Variant
}

func (l *lists) of(app string) ([2]Variant, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if v, ok := l.all[app]; ok {
		return v, nil
	}
	plain, err := readVariant(l.dir, app, "identity")
	if err != nil {
		return [2]Variant{}, err
	}
	gzip, err := readVariant(l.dir, app, "gzip")
	if err != nil {
		return [2]Variant{}, err
	}
	l.all[app] = [2]Variant{plain, gzip}
	return l.all[app], nil
}

// serveStatic answers a small JSON object at once, slowly at paths ending in /previews, and a list at paths ending in
// /environments.
// Spans that are sent to it are read and forgotten.
func serveStatic(ctx context.Context, addr, dir string) error {
	known := lists{dir: dir, all: map[string][2]Variant{}}
	answer := []byte(`{"recorded":true}` + "\n")
	server := &http.Server{ReadHeaderTimeout: 10 * time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, "/environments"):
			variants, err := known.of(path.Base(path.Dir(r.URL.Path)))
			if err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return
			}
			serveVariant(w, r, variants)
			return
		case strings.HasSuffix(r.URL.Path, "/previews"):
			wait(r.Context(), Slow)
		case r.URL.Path == "/v1/traces":
			_, _ = io.Copy(io.Discard, r.Body)
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", strconv.Itoa(len(answer)))
		_, _ = w.Write(answer)
	})}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return fmt.Errorf("answering at once: %w", err)
	}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// serveVariant does the least that is right for a client which names one encoding and one tag.
func serveVariant(w http.ResponseWriter, r *http.Request, variants [2]Variant) {
	v := variants[0]
	if r.Header.Get("Accept-Encoding") == "gzip" {
		v = variants[1]
	}
	h := w.Header()
	h.Set("ETag", v.ETag)
	h.Set("Cache-Control", "private, no-cache")
	h.Set("Vary", "Accept-Encoding")
	if r.Header.Get("If-None-Match") == v.ETag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(v.Body)))
	if v.ContentEncoding != "" {
		h.Set("Content-Encoding", v.ContentEncoding)
	}
	_, _ = w.Write(v.Body)
}

func wait(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}
