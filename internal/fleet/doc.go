// Package fleet is the sample fleet: what a real API server is given so that every read of the gateway has something to
// show and every refusal somebody to refuse.
//
// It has five namespaces that hold runs (four apps and an InfraService), a namespace that belongs to no app, and in it
// custom resource definitions, RBAC, callers, and some objects of each kind that the gateway reads. All of it is in
// manifests/, but for the sample runs, which are lived in memory (see internal/simulator/life).
//
// # fleet-rbac
//
// Rights are on the group glidepath.hangar.io, which no API server serves; a SubjectAccessReview asks for the strings.
//
//	role      manifests/rbac/roles.yaml   may
//	reader    glidepath-api-reader        list and get runs, releases, tests, environments; get runs/logs, evidence;
//	                                      list events; validate cicd
//	operator  glidepath-api-operator      rerun and cancel runs; no read
//	releaser  glidepath-api-releaser      promote and rollback environments; no read
//
// The callers are ServiceAccounts in the namespace glidepath-demo:
//
//	caller      has                             where
//	reader      reader                          cluster-wide
//	app-reader  reader                          app-gate-api-cicd alone, by a RoleBinding
//	operator    operator                        cluster-wide
//	releaser    releaser                        cluster-wide
//	delegate    reader, operator, releaser      cluster-wide; the gateway is to know it as a delegate
//	stranger    nothing                         -
//
// The gateway's own processes have identities in platform-system, in manifests/rbac/authz.yaml, livehub.yaml and runs.yaml: authz
// creates TokenReviews and SubjectAccessReviews and sees namespaces; livehub lists and watches runs, gets TaskRuns, pods
// and pod logs; runs lists namespaces. None may do anything else, and no caller may do anything on the cluster's own
// resources.
package fleet
