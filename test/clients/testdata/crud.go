// Creates, reads, changes and deletes a link by the client that oapi-codegen made.
package main

import (
	"context"
	"fmt"
	"net/http"
	"os"

	"clients/api"
)

func main() {
	if err := run(context.Background(), os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

func run(ctx context.Context, base, key, code string) error {
	c, err := api.NewClientWithResponses(base, api.WithRequestEditorFn(func(_ context.Context, r *http.Request) error {
		r.Header.Set("Authorization", "Bearer "+key)
		return nil
	}))
	if err != nil {
		return err
	}
	made, err := c.CreateLinkWithResponse(ctx, &api.CreateLinkParams{}, api.LinkCreate{LongUrl: "https://example.com/a", CustomAlias: &code})
	if err != nil || made.JSON201 == nil {
		return fmt.Errorf("create: %w: %s", err, made.Body)
	}
	fmt.Println("created", made.JSON201.LongUrl, made.JSON201.State == api.LinkStateLive)
	read, err := c.GetLinkWithResponse(ctx, code, &api.GetLinkParams{})
	if err != nil || read.JSON200 == nil {
		return fmt.Errorf("read: %w: %s", err, read.Body)
	}
	fmt.Println("read", read.JSON200.Id == made.JSON201.Id, read.JSON200.RedirectStatus == api.RedirectStatus302)
	title := "Changed"
	changed, err := c.ChangeLinkWithResponse(ctx, code, &api.ChangeLinkParams{}, api.LinkChange{Title: &title})
	if err != nil || changed.JSON200 == nil {
		return fmt.Errorf("change: %w: %s", err, changed.Body)
	}
	fmt.Println("changed", *changed.JSON200.Title, changed.JSON200.LongUrl)
	gone, err := c.DeleteLinkWithResponse(ctx, code, &api.DeleteLinkParams{})
	if err != nil {
		return err
	}
	after, err := c.GetLinkWithResponse(ctx, code, &api.GetLinkParams{})
	if err != nil || after.ApplicationproblemJSON404 == nil {
		return fmt.Errorf("read what was deleted: %w: %s", err, after.Body)
	}
	fmt.Println("deleted", gone.StatusCode(), after.ApplicationproblemJSON404.Type)
	return nil
}
