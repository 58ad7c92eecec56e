// Package board is the page that shows an app's live runs as they change: one
// file that the edge serves as it stands. It holds no data. What it shows it asks
// the API for, with a token that whoever looks at it pastes.
package board

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"strings"
)

//go:embed board.html
var page []byte

// Path is where the page is served.
const Path = "/board"

// HTML gives the page. The slice belongs to the caller.
func HTML() []byte { return bytes.Clone(page) }

// Policy gives the page's Content-Security-Policy: its own script and style by
// their hashes, calls to where it came from, and nothing else. Text cannot become
// markup or script, whatever a name or a log says.
func Policy() string {
	return strings.Join([]string{
		"default-src 'none'",
		"script-src '" + hashOf("script") + "'",
		"style-src '" + hashOf("style") + "'",
		"connect-src 'self'",
		"img-src data:",
		"base-uri 'none'",
		"form-action 'none'",
		"frame-ancestors 'none'",
		"require-trusted-types-for 'script'",
		"trusted-types 'none'",
	}, "; ")
}

// hashOf gives the hash of what stands in the page's one element of a name.
func hashOf(element string) string {
	_, after, _ := bytes.Cut(page, []byte("<"+element+">"))
	inside, _, _ := bytes.Cut(after, []byte("</"+element+">"))
	sum := sha256.Sum256(inside)
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}
