package config

import (
	"slices"
	"strings"
)

// The roles of CURT_ROLE.
const (
	RoleAll      = "all"
	RoleRedirect = "redirect" // follows links
	RoleAPI      = "api"      // API, dashboard and pages
	RoleWorker   = "worker"   // what nobody waits for
	RoleKeys     = "keys"     // generates the keys of CURT_CODES=pool
	RoleWriter   = "writer"   // writes the links of CURT_WRITES=queued
)

// Roles returns the roles of a fleet's servers.
func Roles() []string { return []string{RoleRedirect, RoleAPI, RoleWorker, RoleKeys, RoleWriter} }

// Does reports whether the server has a role.
func (c Config) Does(role string) bool {
	return slices.Contains(c.Role, RoleAll) || slices.Contains(c.Role, role)
}

// roles checks what the server is for, and what settings do not go with that.
func (c Config) roles(p *problems) {
	const expected = "expected all, or some of redirect, api, worker, keys and writer"
	shown := strings.Join(c.Role, ",")
	p.distinct("CURT_ROLE", c.Role)
	for _, r := range c.Role {
		if r != "" && r != RoleAll && !slices.Contains(Roles(), r) {
			p.add("CURT_ROLE", r, expected)
			return
		}
	}
	switch {
	case len(c.Role) == 0:
		p.add("CURT_ROLE", "", expected)
	case len(c.Role) > 1 && slices.Contains(c.Role, RoleAll):
		p.add("CURT_ROLE", shown, "all includes every role; use it alone")
	case c.Links == SQLite && (!c.Does(RoleRedirect) || !c.Does(RoleAPI) || !c.Does(RoleWorker)):
		p.add("CURT_ROLE", shown, "links are in this server's data folder, out of reach of other servers; use all, or set CURT_LINKS=postgres://user@host/database")
	case c.Links == SQLite && c.Codes == CodesPool && !c.Does(RoleKeys):
		p.add("CURT_ROLE", shown, "CURT_CODES=pool needs the role keys, and links are out of reach of other servers; use all")
	case c.Links == SQLite && c.Queues() && !c.Does(RoleWriter):
		p.add("CURT_ROLE", shown, "CURT_WRITES=queued needs the role writer, and links are out of reach of other servers; use all")
	case slices.Contains(c.Role, RoleWriter) && !c.Queues():
		p.add("CURT_ROLE", shown, "links are queued with CURT_WRITES=queued only; set that, or leave out writer")
	case slices.Contains(c.Role, RoleKeys) && c.Codes != CodesPool:
		p.add("CURT_ROLE", shown, "keys are generated for CURT_CODES=pool only; set that, or leave out keys")
	case c.Analytics == "" && c.Events == "" && c.Does(RoleRedirect) != c.Does(RoleAPI):
		p.add("CURT_ROLE", shown, "redirects and statistics run on different servers; also set CURT_ANALYTICS=postgres://user@host/database")
	case c.APIListen != "" && !c.Does(RoleAPI):
		p.add("CURT_API_LISTEN", c.APIListen, "CURT_ROLE="+shown+" has no API; unset it")
	}
}
