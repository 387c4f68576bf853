package httpapi

import (
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"curt/internal/auth"
	"curt/internal/link"
)

const keysPath = "/api/v1/keys"

// maxKeyBody bounds the body of a key in bytes: a name and four scopes.
const maxKeyBody = 4 << 10

// Key is an API key as the API shows it. What a key does not have is null.
type Key struct {
	ID          string       `json:"id" format:"uuid" doc:"A UUIDv7, for good; created_by of the links that the key makes."`
	WorkspaceID string       `json:"workspace_id"`
	Plan        string       `json:"plan" enum:"free,verified,registered,default" doc:"Whose limits hold for the workspace."`
	Name        string       `json:"name"`
	Scopes      []auth.Scope `json:"scopes" nullable:"false" enum:"links:read,links:write,stats:read,admin"`
	CreatedAt   time.Time    `json:"created_at"`
	CreatedBy   *string      `json:"created_by" doc:"The id of the key that made it, or admin."`
	ExpiresAt   *time.Time   `json:"expires_at"`
	LastUsedAt  *time.Time   `json:"last_used_at" doc:"About a minute behind."`
}

// KeyWithSecret is a key with its secret.
type KeyWithSecret struct {
	Key
	Secret string `json:"key" doc:"The key itself. It is shown this once and stored nowhere."`
}

// KeyCreate is the body that asks for a key.
type KeyCreate struct {
	Name        string      `json:"name" maxLength:"100" doc:"What the key is for."`
	Scopes      []string    `json:"scopes" minItems:"1" uniqueItems:"true" nullable:"false" enum:"links:read,links:write,stats:read,admin" doc:"admin is for keys of the workspace default."`
	ExpiresAt   opt[date]   `json:"expires_at" required:"false" doc:"From this millisecond on the key is nobody's."`
	WorkspaceID opt[string] `json:"workspace_id" required:"false" pattern:"^[a-z0-9_-]{1,64}$" doc:"Whose key it is; without it the caller's workspace. A new one is made."`
	Plan        opt[string] `json:"plan" required:"false" enum:"free,verified,registered,default" doc:"The plan of the whole workspace, from now on: it replaces the one that all of its keys have, and revoking this key does not undo that. Without it the plan stays as it is, registered for a new workspace."`
}

// KeyRotate is the body that asks for another secret.
type KeyRotate struct {
	Overlap opt[int64] `json:"overlap" required:"false" minimum:"0" maximum:"604800" doc:"Seconds for which the secret before goes on; without it it stops at once."`
}

// KeyList is a page of keys.
type KeyList struct {
	Keys       []Key  `json:"keys" nullable:"false"`
	NextCursor string `json:"next_cursor,omitzero" doc:"Continues the walk; absent at its end."`
}

// keyOperations is what the API can do with keys. All of it is for admins: a key that
// made keys would let whoever stole it stay after it was revoked.
func (a *api) keyOperations(d describer) []*operation {
	id := &huma.Param{
		Name: "id", In: "path", Required: true, Description: "The id of the key.", Example: "019e830c-2e00-7a51-8c3e-5f0b6d2a9c41",
		Schema: &huma.Schema{Type: huma.TypeString, Format: "uuid"},
	}
	made := map[string]*huma.Param{"Location": header("The path of the key in this API.")}
	return []*operation{
		{
			Operation: huma.Operation{
				Method: http.MethodPost, Path: keysPath, OperationID: "create-key", Summary: "Make an API key",
				MaxBodyBytes: maxKeyBody, RequestBody: d.body(KeyCreate{}, "application/json"),
				Responses: d.answers(201, "The key, with its secret.", KeyWithSecret{}, made, 408, 413, 415, 507),
			},
			action: auth.ManageKeys, serve: (*call).createKey,
			examples: []example{
				{name: "workspace", summary: "For a workspace of its own", body: `{"name":"CI","scopes":["links:read","links:write"],"workspace_id":"web","expires_at":"2027-01-01T00:00:00Z"}`},
			},
		},
		{
			Operation: huma.Operation{
				Method: http.MethodGet, Path: keysPath, OperationID: "list-keys", Summary: "List API keys, newest first",
				Parameters: keyListParams(), Responses: d.answers(200, "A page of keys.", KeyList{}, nil),
			},
			action: auth.ManageKeys, serve: (*call).listKeys,
		},
		{
			Operation: huma.Operation{
				Method: http.MethodGet, Path: keysPath + "/{id}", OperationID: "get-key", Summary: "Show an API key, without its secret",
				Parameters: []*huma.Param{id}, Responses: d.answers(200, "The key.", Key{}, nil, 404),
			},
			action: auth.ManageKeys, serve: (*call).getKey,
		},
		{
			Operation: huma.Operation{
				Method: http.MethodDelete, Path: keysPath + "/{id}", OperationID: "revoke-key", Summary: "Revoke an API key for good",
				Description: "Requests with it are refused from now on, its streams end within 5 s, and so do the shares that it made, unless they are to be kept. Its links stay.",
				Parameters:  []*huma.Param{id, queryParam("keep_shares", "true lets the shares that the key made go on to their own ends.", &huma.Schema{Type: huma.TypeBoolean, Default: false})},
				Responses:   d.answers(204, "The key is revoked.", nil, nil, 404, 507),
			},
			action: auth.ManageKeys, serve: (*call).revokeKey,
		},
		{
			Operation: huma.Operation{
				Method: http.MethodPost, Path: keysPath + "/{id}/rotate", OperationID: "rotate-key", Summary: "Give an API key another secret",
				MaxBodyBytes: maxKeyBody, RequestBody: d.body(KeyRotate{}, "application/json"),
				Parameters: []*huma.Param{id}, Responses: d.answers(200, "The key, with its new secret.", KeyWithSecret{}, nil, 404, 408, 409, 413, 415, 507),
			},
			action: auth.ManageKeys, serve: (*call).rotateKey,
			examples: []example{{name: "overlap", summary: "The secret before goes on for an hour", body: `{"overlap":3600}`}},
		},
	}
}

func keyListParams() []*huma.Param {
	one, most := 1.0, float64(auth.MaxKeyPage)
	return []*huma.Param{
		queryParam("cursor", "Where to go on: the next_cursor of the page before, with the same filters.", &huma.Schema{Type: huma.TypeString}),
		queryParam("limit", "The most keys of a page.", &huma.Schema{Type: huma.TypeInteger, Minimum: &one, Maximum: &most, Default: 50}),
		queryParam("workspace_id", "Only keys of this workspace.", &huma.Schema{Type: huma.TypeString}),
	}
}

// keyResource returns a key as the API shows it. It points into k.
func keyResource(k *auth.Key) Key {
	return Key{
		ID: k.ID.String(), WorkspaceID: string(k.Workspace), Plan: string(k.Plan), Name: k.Name, Scopes: k.Scopes,
		CreatedAt: k.Created, CreatedBy: text(&k.CreatedBy), ExpiresAt: instant(&k.Expires), LastUsedAt: instant(&k.Used),
	}
}

func (c *call) createKey() error {
	var body KeyCreate
	if err := decode(c.body, &body); err != nil {
		return err
	}
	req := auth.NewKeyRequest{
		Name: body.Name, Workspace: link.WorkspaceID(body.WorkspaceID.Value), Plan: auth.Plan(body.Plan.Value),
		Expires: time.Time(body.ExpiresAt.Value),
	}
	for _, s := range body.Scopes {
		req.Scopes = append(req.Scopes, auth.Scope(s))
	}
	switch { // what is given must say something
	case body.WorkspaceID.Given && !body.WorkspaceID.Null && body.WorkspaceID.Value == "":
		return badField("workspace_id", "is empty")
	case body.Plan.Given && !body.Plan.Null && body.Plan.Value == "":
		return badField("plan", "is empty")
	}
	k, secret, err := c.api.keys.Create(c.r.Context(), c.now, c.who, req)
	if err != nil {
		return err
	}
	c.w.Header()["Location"] = []string{keysPath + "/" + k.ID.String()}
	return c.json(http.StatusCreated, KeyWithSecret{Key: keyResource(&k), Secret: secret})
}

// keyID returns the key that the path names. What is no id has no key.
func (c *call) keyID() (link.ID, error) {
	id, err := link.ParseID(c.r.PathValue("id"))
	if err != nil {
		return id, auth.ErrNoKey
	}
	return id, nil
}

func (c *call) getKey() error {
	id, err := c.keyID()
	if err != nil {
		return err
	}
	k, err := c.api.keys.Get(c.r.Context(), c.who, id)
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, keyResource(&k))
}

func (c *call) revokeKey() error {
	id, err := c.keyID()
	if err != nil {
		return err
	}
	keep, err := c.flag("keep_shares")
	if err != nil {
		return err
	}
	if err := c.api.keys.Revoke(c.r.Context(), c.who, id, keep); err != nil {
		return err
	}
	commonHeaders(c.w.Header())
	c.w.WriteHeader(http.StatusNoContent)
	return nil
}

func (c *call) rotateKey() error {
	id, err := c.keyID()
	if err != nil {
		return err
	}
	var body KeyRotate
	if err := decode(c.body, &body); err != nil {
		return err
	}
	seconds := body.Overlap.Value
	if most := int64(auth.MaxOverlap / time.Second); seconds < 0 || seconds > most { // before it overflows
		return badField("overlap", "want 0 to 604800 seconds")
	}
	k, secret, err := c.api.keys.Rotate(c.r.Context(), c.now, c.who, id, time.Duration(seconds)*time.Second)
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, KeyWithSecret{Key: keyResource(&k), Secret: secret})
}

func (c *call) listKeys() error {
	limit, err := c.integer("limit")
	if err != nil {
		return err
	}
	filter := auth.KeyFilter{Workspace: link.WorkspaceID(c.query.Get("workspace_id"))}
	walk := []string{"keys", string(filter.Workspace)}
	page := auth.KeyPage{Limit: limit}
	if sealed := c.query.Get("cursor"); sealed != "" {
		after, ok := c.api.cursors.openWalk(walk, sealed)
		if !ok || len(after) != len(page.Before) {
			return badField("cursor", "is not a cursor of this list")
		}
		copy(page.Before[:], after)
	}
	keys, more, err := c.api.keys.List(c.r.Context(), c.who, filter, page)
	if err != nil {
		return err
	}
	list := KeyList{Keys: make([]Key, len(keys))}
	for i := range keys {
		list.Keys[i] = keyResource(&keys[i])
	}
	if more {
		last := keys[len(keys)-1].ID
		list.NextCursor = c.api.cursors.sealWalk(walk, string(last[:]))
	}
	return c.json(http.StatusOK, list)
}
