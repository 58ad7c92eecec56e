package provider

import (
	"context"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/zitadel/oidc/v3/pkg/op"
)

// device is one that somebody wants to sign in on.
type device struct {
	code     string
	userCode string
	state    op.DeviceAuthorizationState
	polled   time.Time
}

// maxDevices bounds those that are waited for.
const maxDevices = 1000

func (p *Provider) storeDevice(d *device) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for code, old := range p.devices {
		if time.Now().After(old.state.Expires.Add(time.Minute)) { // an expired one is told so first
			delete(p.devices, code)
		}
	}
	if len(p.devices) >= maxDevices {
		return fmt.Errorf("%d devices are waited for", maxDevices)
	}
	p.devices[d.code] = d
	return nil
}

// poll gives the state of a device's request. One that asks too fast is answered
// slow_down, which the library makes of an exceeded deadline.
func (p *Provider) poll(client, code string) (*op.DeviceAuthorizationState, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	d := p.devices[code]
	if d == nil || d.state.ClientID != client {
		return nil, fmt.Errorf("no such device")
	}
	now := time.Now()
	fast := now.Sub(d.polled) < p.interval
	d.polled = now
	if fast && !d.state.Done && !d.state.Denied {
		return nil, context.DeadlineExceeded
	}
	state := d.state
	if state.Done {
		delete(p.devices, code) // once
	}
	return &state, nil
}

var form = template.Must(template.New("device").Parse(`<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Sign in</title>
<h1>Sign in to Glidepath</h1>
<p>This provider is for development: pick who you are.</p>
<form method="post">
<p><label>Code <input name="user_code" value="{{.Code}}" autocomplete="off" required></label></p>
{{range .People}}<p><button name="person" value="{{.Login}}">{{.Login}} ({{.Name}})</button></p>
{{end}}<p><button name="deny" value="1">Deny</button></p>
</form></html>
`))

func (p *Provider) page(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_ = form.Execute(w, struct { // the browser may be gone
		Code   string
		People []Person
	}{r.URL.Query().Get("user_code"), p.people})
}

func (p *Provider) decide(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, 4<<10)
	person, known := p.person(r.PostFormValue("person"))
	deny := r.PostFormValue("deny") != ""
	if !known && !deny {
		http.Error(w, "no such person", http.StatusBadRequest)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, d := range p.devices {
		if !strings.EqualFold(d.userCode, r.PostFormValue("user_code")) || time.Now().After(d.state.Expires) {
			continue
		}
		d.state.Denied, d.state.Done = deny, !deny
		d.state.Subject, d.state.AuthTime = person.subject(), time.Now()
		_, _ = w.Write([]byte("Done. You can go back to your terminal.\n"))
		return
	}
	http.Error(w, "no such code", http.StatusBadRequest)
}

// answer does what the page's form does.
func (p *Provider) answer(ctx context.Context, values url.Values) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.Issuer+"/device", strings.NewReader(values.Encode()))
	if err != nil {
		return fmt.Errorf("answering a device: %w", err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		return fmt.Errorf("answering a device: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("answering a device: %s", resp.Status)
	}
	return nil
}
