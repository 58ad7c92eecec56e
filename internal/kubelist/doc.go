// Package kubelist owns reading lists of objects from the API server without
// decoding them. An object stays the JSON that the API server sent: only
// metadata.managedFields is taken out, and apiVersion and kind are put in where
// a list leaves them out. What is decoded is the handful of fields by which
// objects are sorted and told apart.
package kubelist
