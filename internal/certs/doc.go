// Package certs owns certificates, keys and authorities in files: how they are
// read within bounds, what is said when they are of no use, and how a process
// goes over to those that were renewed. No error of it shows anything of a key.
package certs
