// Package chromium opens pages in a headless Chromium, for tests that look at them as a person would.
package chromium

import (
	"context"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// Page is one that is open until its test ends. It is not safe for concurrent use.
type Page struct {
	t   *testing.T
	ctx context.Context //nolint:containedctx // that of the browser

	mu         sync.Mutex
	complaints []string
}

// Open opens a page. Where there is no Chromium the test is skipped, but for CI, which has to have one.
func Open(t *testing.T, url string) *Page {
	t.Helper()
	binary := find()
	if binary == "" {
		if os.Getenv("CI") != "" {
			t.Fatal("there is no Chromium, and CI has to have one")
		}
		t.Skip("there is no Chromium here")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(binary), chromedp.NoSandbox, chromedp.WindowSize(1280, 800), chromedp.UserDataDir(t.TempDir()))
	p := &Page{t: t}
	ctx, cancel := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(cancel)
	p.ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	if err := chromedp.Listen(p.ctx, p.hear); err != nil {
		t.Fatal(err)
	}
	p.Do(chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, cdplog.Enable, cdp.Empty{})
		return err
	}), chromedp.Navigate(url))
	return p
}

func find() string {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			return found
		}
	}
	return ""
}

// hear keeps what the browser complains about.
func (p *Page) hear(event any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch e := event.(type) {
	case *cdplog.EventEntryAdded:
		p.complaints = append(p.complaints, e.Entry.Text)
	case *runtime.EventExceptionThrown:
		p.complaints = append(p.complaints, e.ExceptionDetails.Text)
	}
}

// Quiet fails the test for anything that the browser has complained about: a violation of the page's policy is among that.
func (p *Page) Quiet() {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.complaints {
		p.t.Errorf("the browser says: %s", c)
	}
}

// Do does things in the page.
func (p *Page) Do(steps ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	if err := chromedp.Do(p.ctx, steps...); err != nil {
		p.t.Fatal(err)
	}
}

// Fill sets the value of a field.
func (p *Page) Fill(css, value string) {
	p.t.Helper()
	p.Do(chromedp.SetValue(chromedp.CSS(css), value))
}

// Click clicks on an element once it is there.
func (p *Page) Click(css string) {
	p.t.Helper()
	p.Do(chromedp.Click(chromedp.CSS(css)))
}

// Picture is what is to be seen, as PNG.
func (p *Page) Picture() []byte {
	p.t.Helper()
	picture, err := chromedp.Run(p.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		p.t.Fatal(err)
	}
	return picture
}

// Eval gives the value of an expression in the page.
func Eval[T any](p *Page, expression string) T {
	p.t.Helper()
	got, err := chromedp.Run(p.ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		p.t.Fatal(err)
	}
	return got
}

// Becomes waits until an expression is true in the page. It asks from outside: a poll in the page would be a function made of
// text, which a strict policy forbids.
func (p *Page) Becomes(expression string) {
	p.t.Helper()
	const patience = time.Minute
	end := time.Now().Add(patience)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !Eval[bool](p, expression) {
		if time.Now().After(end) {
			p.t.Fatalf("%s never became true; the page says %q", expression, Eval[string](p, "document.body.innerText"))
		}
		<-tick.C
	}
}
