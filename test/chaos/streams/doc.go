// Package streams holds live streams to their promise while everything around them fails: whatever happens to the parts of a
// gateway, what a viewer has made of its stream is what the cluster holds once things are quiet, no change comes twice, and
// none is left out without a word.
package streams
