package dynamodb

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"curt/internal/backend/dynamodb/ddb"
	"curt/internal/backend/dynamodb/linkitem"
	"curt/internal/link"
)

// Replace implements link.Store: a read, and a transaction over the version.
func (s *creator) Replace(ctx context.Context, l link.Link, e link.Edit) (link.Link, error) {
	if err := s.db.Ready(ctx); err != nil {
		return link.Link{}, fmt.Errorf("replace: %w", err)
	}
	if err := l.Validate(); err != nil {
		return link.Link{}, fmt.Errorf("replace: %w", err)
	}
	var stored link.Link
	err := s.gate.Write(ctx, func(ctx context.Context) (err error) {
		stored, err = s.replace(ctx, l, &e)
		return err
	})
	if err != nil {
		return link.Link{}, fmt.Errorf("replace %s: %w", l.Key, err)
	}
	return stored, nil
}

func (s *creator) replace(ctx context.Context, l link.Link, e *link.Edit) (link.Link, error) {
	old, err := s.item(ctx, l.Key, true)
	if err != nil {
		return link.Link{}, err
	}
	if err := replaceable(&old, &l); err != nil {
		return link.Link{}, err
	}
	over := l.Version
	l.ID, l.CodeKind, l.Created, l.Spent, l.Version = old.ID, old.CodeKind, old.Created, old.Spent, over+1
	l = l.Normal()
	update, err := s.update(&l, over)
	if err != nil {
		return link.Link{}, err
	}
	event := link.Event{
		Change: link.Change{Key: l.Key, Version: l.Version}, Kind: link.WasUpdated, ID: l.ID, Workspace: l.Workspace,
		Principal: e.Principal, Fields: e.Fields,
	}
	erase := ""
	if l.Status == link.Deleted {
		event.Kind, event.Fields = link.WasDeleted, nil
		if erase, err = linkitem.Twin(&old); err != nil {
			return link.Link{}, err
		}
	}
	pending, err := s.log.Pending(&event, erase)
	if err != nil {
		return link.Link{}, err
	}
	err = s.db.Transact(ctx, append([]types.TransactWriteItem{{Update: update}}, pending...))
	if failed, refused := ddb.Conditions(err); refused {
		return link.Link{}, overtaken(&l, failed[0].Item)
	}
	if err == nil && l.Status == link.Deleted {
		s.log.Erase(ctx, l.Key, erase)
	}
	if err == nil {
		s.log.Pended()
	}
	return l, err
}

// replaceable returns why a link cannot be replaced by one of a version.
func replaceable(old, l *link.Link) error {
	switch {
	case old.Status == link.Deleted:
		return fmt.Errorf("deleted: %w", link.ErrConflict)
	case old.Version != l.Version:
		return fmt.Errorf("stored version is %d: %w", old.Version, link.ErrConflict)
	}
	return nil
}

// overtaken is the error of a change that another one preceded.
func overtaken(l *link.Link, item ddb.Item) error {
	if item == nil {
		return link.ErrNotFound
	}
	return fmt.Errorf("stored version of %s is %d: %w", l.Key, ddb.UintOf(item, linkitem.Version), link.ErrConflict)
}

// update writes all of a link that a change may change, over a version, and nothing that clicks do.
func (s *creator) update(l *link.Link, over link.Version) (*types.Update, error) {
	item, err := linkitem.Marshal(l)
	if err != nil {
		return nil, err
	}
	names := map[string]string{"#v": linkitem.Version, "#s": linkitem.Status}
	values := ddb.Item{":over": ddb.Uint(uint64(over)), ":deleted": ddb.Uint(uint64(link.Deleted))}
	var sets, removes []string
	changing := linkitem.Changing()
	if l.Status == link.Deleted {
		changing = append(changing, linkitem.Spent, linkitem.OfLate, linkitem.Late)
		delete(item, linkitem.Spent)
	}
	for i, name := range changing {
		n := strconv.Itoa(i)
		names["#"+n] = name
		if value, there := item[name]; there {
			values[":"+n] = value
			sets = append(sets, "#"+n+" = :"+n)
		} else {
			removes = append(removes, "#"+n)
		}
	}
	expression := "SET " + strings.Join(sets, ", ")
	if len(removes) > 0 {
		expression += " REMOVE " + strings.Join(removes, ", ")
	}
	return &types.Update{
		TableName: &s.db.Links, Key: linkitem.KeyOf(l.Key), UpdateExpression: &expression,
		ConditionExpression:      aws.String("#v = :over AND #s <> :deleted"),
		ExpressionAttributeNames: names, ExpressionAttributeValues: values,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}, nil
}

// Spend implements link.Spender: a read, and a conditional update, which is a transaction with an
// entry of the change log where it takes the last click.
func (s *creator) Spend(ctx context.Context, k link.Key, n uint64) (granted uint64, err error) {
	err = s.gate.Write(ctx, func(ctx context.Context) error {
		for {
			l, err := s.item(ctx, k, true)
			switch {
			case err != nil:
				return err
			case l.Status == link.Deleted:
				return link.ErrNotFound
			case l.MaxClicks == 0 || n == 0:
				granted = n
				return nil
			}
			granted = min(n, l.MaxClicks-min(l.Spent, l.MaxClicks))
			if granted == 0 {
				return nil
			}
			err = s.spend(ctx, &l, granted)
			if _, refused := ddb.Conditions(err); !refused {
				return err
			}
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
		}
	})
	if err != nil {
		return 0, fmt.Errorf("spend %d clicks of %s: %w", n, k, err)
	}
	return granted, nil
}

// spend takes clicks of a link as it was read. Its error is a condition that did not hold where
// another caller was first in a way that matters.
func (s *creator) spend(ctx context.Context, l *link.Link, n uint64) error {
	const bound = "#v = :v AND max_clicks = :m AND #s <> :deleted AND "
	names := map[string]string{"#v": linkitem.Version, "#s": linkitem.Status}
	values := ddb.Item{
		":v": ddb.Uint(uint64(l.Version)), ":m": ddb.Uint(l.MaxClicks), ":deleted": ddb.Uint(uint64(link.Deleted)),
		":to": ddb.Uint(n), ":most": ddb.Uint(l.MaxClicks - n),
	}
	if l.Spent+n < l.MaxClicks { // others may take some meanwhile, but for the last
		_, err := s.db.UpdateOnce(ctx, &dynamodb.UpdateItemInput{
			TableName: &s.db.Links, Key: linkitem.KeyOf(l.Key), UpdateExpression: aws.String("ADD spent :to"),
			ConditionExpression:      aws.String(bound + "(attribute_not_exists(spent) OR spent < :most)"),
			ExpressionAttributeNames: names, ExpressionAttributeValues: values,
		})
		return err
	}
	values[":most"], values[":to"] = ddb.Uint(l.Spent), ddb.Uint(l.Spent+n)
	read := "spent = :most"
	if l.Spent == 0 {
		read = "(attribute_not_exists(spent) OR spent = :most)"
	}
	exhausted := link.Event{Change: link.Change{Key: l.Key, Version: l.Version}, Kind: link.WasExhausted, ID: l.ID, Workspace: l.Workspace}
	pending, err := s.log.Pending(&exhausted, "")
	if err != nil {
		return err
	}
	err = s.db.Transact(ctx, append([]types.TransactWriteItem{{Update: &types.Update{
		TableName: &s.db.Links, Key: linkitem.KeyOf(l.Key), UpdateExpression: aws.String("SET spent = :to"),
		ConditionExpression:      aws.String(bound + read),
		ExpressionAttributeNames: names, ExpressionAttributeValues: values,
	}}}, pending...))
	if err == nil {
		s.log.Pended()
	}
	return err
}
