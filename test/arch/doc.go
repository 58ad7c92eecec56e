// Package arch owns the architecture test: which folder may import which, which
// libraries are confined to one place, and the conventions every package keeps.
//
// It reads source text only, so it sees files behind every build constraint, and
// takes no build. docs/architecture.md explains the layers; this package is what
// holds them.
package arch
