// Package fleet is the sample fleet: what a real API server is given so that every read of the gateway has something to show.
package fleet
