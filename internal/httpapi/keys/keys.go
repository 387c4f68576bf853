// Package keys is the API of API keys and of what a caller may do.
package keys

import (
	"errors"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"curt/internal/auth"
	"curt/internal/httpapi/kernel"
	"curt/internal/link"
	"curt/internal/shorten/linkservice"
)

// Path is that of the list of keys.
const Path = "/api/v1/keys"

// maxBody bounds the body of a key in bytes: a name and four scopes.
const maxBody = 4 << 10

// Keys are the operations on API keys.
type Keys struct {
	Keys  *auth.Keys
	Links *linkservice.Service // has the limits of a caller

	// Places returns the date of the data of places, zero if there is none, and its attribution;
	// nil = places are unknown.
	Places func() (built time.Time, attribution string)
}

// Operations are what the API can do with keys.
func (ks *Keys) Operations(d kernel.Describer) []*kernel.Operation {
	return append(ks.keyOperations(d), ks.selfOperation(d))
}

// Key is an API key as the API shows it. What a key does not have is null.
type Key struct {
	ID          string       `json:"id" format:"uuid" doc:"A permanent UUIDv7; created_by of the links created with the key."`
	WorkspaceID string       `json:"workspace_id"`
	Plan        string       `json:"plan" enum:"free,verified,registered,default" doc:"The plan whose limits apply to the workspace."`
	Name        string       `json:"name"`
	Scopes      []auth.Scope `json:"scopes" nullable:"false" enum:"links:read,links:write,stats:read,admin"`
	CreatedAt   time.Time    `json:"created_at"`
	CreatedBy   *string      `json:"created_by" doc:"The id of the key that created it, or admin."`
	ExpiresAt   *time.Time   `json:"expires_at"`
	LastUsedAt  *time.Time   `json:"last_used_at" doc:"Updated about once a minute."`
}

// KeyWithSecret is a key with its secret.
type KeyWithSecret struct {
	Key
	Secret string `json:"key" doc:"The secret key. Shown only once and never stored."`
}

// KeyCreate is the body that asks for a key.
type KeyCreate struct {
	Name        string                  `json:"name" maxLength:"100" doc:"The name of the key."`
	Scopes      []string                `json:"scopes" minItems:"1" uniqueItems:"true" nullable:"false" enum:"links:read,links:write,stats:read,admin" doc:"admin is only for keys of the workspace default."`
	ExpiresAt   kernel.Opt[kernel.Date] `json:"expires_at" required:"false" doc:"When the key expires."`
	WorkspaceID kernel.Opt[string]      `json:"workspace_id" required:"false" pattern:"^[a-z0-9_-]{1,64}$" doc:"The workspace of the key. Default: the caller's workspace. Created if new."`
	Plan        kernel.Opt[string]      `json:"plan" required:"false" enum:"free,verified,registered,default" doc:"Sets the plan of the whole workspace, for all of its keys; revoking this key does not undo it. Default: unchanged; registered for a new workspace."`
}

// KeyRotate is the body that asks for another secret.
type KeyRotate struct {
	Overlap kernel.Opt[int64] `json:"overlap" required:"false" minimum:"0" maximum:"604800" doc:"Seconds for which the old secret stays valid. Default: it is revoked at once."`
}

// KeyList is a page of keys.
type KeyList struct {
	Keys       []Key  `json:"keys" nullable:"false"`
	NextCursor string `json:"next_cursor,omitzero" doc:"Cursor of the next page; absent on the last page."`
}

// keyOperations is what the API can do with keys. All of it is for admins: a key that
// made keys would let whoever stole it stay after it was revoked.
func (ks *Keys) keyOperations(d kernel.Describer) []*kernel.Operation {
	id := &huma.Param{
		Name: "id", In: "path", Required: true, Description: "The id of the key.", Example: "019e830c-2e00-7a51-8c3e-5f0b6d2a9c41",
		Schema: &huma.Schema{Type: huma.TypeString, Format: "uuid"},
	}
	made := map[string]*huma.Param{"Location": kernel.Header("The path of the key in this API.")}
	return []*kernel.Operation{
		{
			Operation: huma.Operation{
				Method: http.MethodPost, Path: Path, OperationID: "create-key", Summary: "Create an API key",
				MaxBodyBytes: maxBody, RequestBody: d.Body(KeyCreate{}, "application/json"),
				Responses: d.Answers(201, "The key with its secret.", KeyWithSecret{}, made, 408, 413, 415, 507),
			},
			Action: auth.ManageKeys, Serve: kernel.Take(http.StatusCreated, ks.createKey),
			Examples: []kernel.Example{
				{Name: "workspace", Summary: "For a new workspace", Body: `{"name":"CI","scopes":["links:read","links:write"],"workspace_id":"web","expires_at":"2027-01-01T00:00:00Z"}`},
			},
		},
		{
			Operation: huma.Operation{
				Method: http.MethodGet, Path: Path, OperationID: "list-keys", Summary: "List API keys, newest first",
				Parameters: keyListParams(), Responses: d.Answers(200, "A page of keys.", KeyList{}, nil),
			},
			Action: auth.ManageKeys, Serve: kernel.Reply(http.StatusOK, ks.listKeys),
		},
		{
			Operation: huma.Operation{
				Method: http.MethodGet, Path: Path + "/{id}", OperationID: "get-key", Summary: "Get an API key, without its secret",
				Parameters: []*huma.Param{id}, Responses: d.Answers(200, "The key.", Key{}, nil, 404),
			},
			Action: auth.ManageKeys, Serve: kernel.Reply(http.StatusOK, ks.getKey),
		},
		{
			Operation: huma.Operation{
				Method: http.MethodDelete, Path: Path + "/{id}", OperationID: "revoke-key", Summary: "Revoke an API key",
				Description: "Permanent. Requests with the key are refused at once; its streams and its shares end within 5 s, unless the shares are kept. Its links stay.",
				Parameters:  []*huma.Param{id, kernel.QueryParam("keep_shares", "true keeps the shares created with the key until they expire.", &huma.Schema{Type: huma.TypeBoolean, Default: false})},
				Responses:   d.Answers(204, "The key was revoked.", nil, nil, 404, 507),
			},
			Action: auth.ManageKeys, Serve: kernel.Done(http.StatusNoContent, ks.revokeKey),
		},
		{
			Operation: huma.Operation{
				Method: http.MethodPost, Path: Path + "/{id}/rotate", OperationID: "rotate-key", Summary: "Rotate the secret of an API key",
				MaxBodyBytes: maxBody, RequestBody: d.Body(KeyRotate{}, "application/json"),
				Parameters: []*huma.Param{id}, Responses: d.Answers(200, "The key with its new secret.", KeyWithSecret{}, nil, 404, 408, 409, 413, 415, 507),
			},
			Action: auth.ManageKeys, Serve: kernel.Reply(http.StatusOK, ks.rotateKey),
			Examples: []kernel.Example{{Name: "overlap", Summary: "Keep the old secret for an hour", Body: `{"overlap":3600}`}},
		},
	}
}

func keyListParams() []*huma.Param {
	one, most := 1.0, float64(auth.MaxKeyPage)
	return []*huma.Param{
		kernel.QueryParam("cursor", "The next_cursor of the previous page; use it with the same filters.", &huma.Schema{Type: huma.TypeString}),
		kernel.QueryParam("limit", "Maximum number of keys per page.", &huma.Schema{Type: huma.TypeInteger, Minimum: &one, Maximum: &most, Default: 50}),
		kernel.QueryParam("workspace_id", "Only keys of this workspace.", &huma.Schema{Type: huma.TypeString}),
	}
}

// keyResource returns a key as the API shows it. It points into k.
func keyResource(k *auth.Key) Key {
	return Key{
		ID: k.ID.String(), WorkspaceID: string(k.Workspace), Plan: string(k.Plan), Name: k.Name, Scopes: k.Scopes,
		CreatedAt: k.Created, CreatedBy: kernel.Optional(&k.CreatedBy), ExpiresAt: kernel.Instant(&k.Expires), LastUsedAt: kernel.Instant(&k.Used),
	}
}

func (ks *Keys) createKey(c *kernel.Call, body *KeyCreate) (created KeyWithSecret, err error) {
	req := auth.NewKeyRequest{
		Name: body.Name, Workspace: link.WorkspaceID(body.WorkspaceID.Value), Plan: auth.Plan(body.Plan.Value),
		Expires: time.Time(body.ExpiresAt.Value),
	}
	for _, s := range body.Scopes {
		req.Scopes = append(req.Scopes, auth.Scope(s))
	}
	switch { // what is given must say something
	case body.WorkspaceID.Given && !body.WorkspaceID.Null && body.WorkspaceID.Value == "":
		return created, kernel.BadField("workspace_id", "must not be empty")
	case body.Plan.Given && !body.Plan.Null && body.Plan.Value == "":
		return created, kernel.BadField("plan", "must not be empty")
	}
	k, secret, err := ks.Keys.Create(c.R.Context(), c.Now, c.Who, req)
	if err != nil {
		return created, err
	}
	c.W.Header()["Location"] = []string{Path + "/" + k.ID.String()}
	return KeyWithSecret{Key: keyResource(&k), Secret: secret}, nil
}

// keyID returns the key that the path names. What is no id has no key.
func keyID(c *kernel.Call) (link.ID, error) {
	id, err := link.ParseID(c.R.PathValue("id"))
	if err != nil {
		return id, auth.ErrNoKey
	}
	return id, nil
}

func (ks *Keys) getKey(c *kernel.Call) (shown Key, err error) {
	id, err := keyID(c)
	if err != nil {
		return shown, err
	}
	k, err := ks.Keys.Get(c.R.Context(), c.Who, id)
	if err != nil {
		return shown, err
	}
	return keyResource(&k), nil
}

func (ks *Keys) revokeKey(c *kernel.Call) error {
	id, err := keyID(c)
	if err != nil {
		return err
	}
	keep, err := c.Flag("keep_shares")
	if err != nil {
		return err
	}
	return ks.Keys.Revoke(c.R.Context(), c.Who, id, keep)
}

func (ks *Keys) rotateKey(c *kernel.Call) (rotated KeyWithSecret, err error) {
	id, err := keyID(c)
	if err != nil {
		return rotated, err
	}
	var body KeyRotate
	if err := kernel.Decode(c.Body, &body); err != nil {
		return rotated, err
	}
	seconds := body.Overlap.Value
	if most := int64(auth.MaxOverlap / time.Second); seconds < 0 || seconds > most { // before it overflows
		return rotated, kernel.BadField("overlap", "expected 0 to 604800 seconds")
	}
	k, secret, err := ks.Keys.Rotate(c.R.Context(), c.Now, c.Who, id, time.Duration(seconds)*time.Second)
	if err != nil {
		return rotated, err
	}
	return KeyWithSecret{Key: keyResource(&k), Secret: secret}, nil
}

func (ks *Keys) listKeys(c *kernel.Call) (list KeyList, err error) {
	limit, err := c.Integer("limit")
	if err != nil {
		return list, err
	}
	filter := auth.KeyFilter{Workspace: link.WorkspaceID(c.Query.Get("workspace_id"))}
	walk := []string{"keys", string(filter.Workspace)}
	page := auth.KeyPage{Limit: limit}
	after, err := c.Unseal(walk)
	if err != nil {
		return list, err
	}
	if after != "" && len(after) != len(page.Before) {
		return list, kernel.BadCursor()
	}
	copy(page.Before[:], after)
	keys, more, err := ks.Keys.List(c.R.Context(), c.Who, filter, page)
	if err != nil {
		return list, err
	}
	list = KeyList{Keys: make([]Key, len(keys))}
	for i := range keys {
		list.Keys[i] = keyResource(&keys[i])
	}
	if more {
		last := keys[len(keys)-1].ID
		list.NextCursor = c.Seal(walk, string(last[:]))
	}
	return list, nil
}

// SelfPath is that of the key of a request.
const SelfPath = Path + "/self"

// Caller is what a caller may do.
type Caller struct {
	KeyID         *string       `json:"key_id" doc:"The id of the key, or admin; null: no key was sent."`
	Name          *string       `json:"name" doc:"The name of the key; null: the admin key, or no key."`
	WorkspaceID   string        `json:"workspace_id"`
	Plan          string        `json:"plan" enum:"anonymous,free,verified,registered,default" doc:"The plan whose limits apply."`
	Scopes        []auth.Scope  `json:"scopes" nullable:"false" enum:"links:read,links:write,stats:read,admin" doc:"The caller's scopes; admin includes all others."`
	ExpiresAt     *time.Time    `json:"expires_at"`
	Limits        []CreateLimit `json:"limits" nullable:"false" doc:"The create limits, all of which apply. Empty: unlimited."`
	PlacesBuiltAt *time.Time    `json:"places_built_at" doc:"The date of the data that countries and cities in statistics come from; null: there is none."`
	Attribution   *string       `json:"places_attribution" doc:"The attribution that the licence of that data requires; null: none is known to be required."`
	Domains       []string      `json:"domains" nullable:"false" minItems:"1" doc:"The domains available for links; the default domain is first."`
}

// CreateLimit bounds how many links are made.
type CreateLimit struct {
	Links   int   `json:"links" doc:"Creates allowed in a burst and per period."`
	Seconds int64 `json:"seconds" doc:"The length of the period."`
}

// selfOperation tells callers what they may do, so that a program can offer nothing else.
func (ks *Keys) selfOperation(d kernel.Describer) *kernel.Operation {
	return &kernel.Operation{
		Operation: huma.Operation{
			Method: http.MethodGet, Path: SelfPath, OperationID: "get-self", Summary: "Get the current key",
			Description: "The key of the request with its scopes and limits. Available to every key, and without a key.",
			Responses:   d.Answers(200, "The permissions of the caller.", Caller{}, nil),
		},
		Open: true, Serve: kernel.Reply(http.StatusOK, ks.getSelf),
	}
}

func (ks *Keys) getSelf(c *kernel.Call) (s Caller, err error) {
	plan, limits := ks.Links.Limits(c.Who)
	s = Caller{
		KeyID: kernel.Optional(&c.Who.KeyID), WorkspaceID: string(c.Who.Workspace), Plan: string(plan),
		Scopes: append([]auth.Scope{}, c.Who.Scopes...), Limits: make([]CreateLimit, len(limits)),
	}
	for i, l := range limits {
		s.Limits[i] = CreateLimit{Links: l.Count, Seconds: int64(l.Period / time.Second)}
	}
	for _, d := range ks.Links.Domains() {
		s.Domains = append(s.Domains, string(d))
	}
	if ks.Places != nil {
		built, attribution := ks.Places()
		s.PlacesBuiltAt, s.Attribution = kernel.Instant(&built), kernel.Optional(&attribution)
	}
	switch k, err := ks.Keys.Own(c.R.Context(), c.Who); {
	case err == nil:
		s.Name, s.ExpiresAt = kernel.Optional(&k.Name), kernel.Instant(&k.Expires)
	case !errors.Is(err, auth.ErrNoKey): // which the admin key is
		return s, err
	}
	return s, nil
}
