package coldsql

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
)

// The settings that say whether links and accounts are in one database.
const (
	SettingApart      = "accounts"    // beside links: their accounts are elsewhere
	SettingAccountsOf = "accounts_of" // beside accounts: whose they are
	SettingMoved      = "links_moved" // beside links that curt move has moved away: whose the accounts are
	settingCodeKey    = "code_key"    // beside links

	Apart = "apart" // the value of SettingApart

	sqlSetting    = `SELECT value FROM settings WHERE name = $1`
	sqlAddSetting = `INSERT INTO settings (name, value) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING`
	sqlAny        = `SELECT 1 FROM followers WHERE EXISTS (SELECT 1 FROM keys) OR EXISTS (SELECT 1 FROM journal) OR EXISTS (SELECT 1 FROM shares) OR EXISTS (SELECT 1 FROM cases)`
)

// Why links and accounts do not go together.
var (
	ErrApart   = errors.New("the accounts of these links are in a separate database, but CURT_ACCOUNTS is not set; set it to that database")
	ErrBeside  = errors.New("accounts (keys, shares or decisions) already exist in the link database and would be ignored; unset CURT_ACCOUNTS")
	ErrMoved   = errors.New("the links of this database were moved elsewhere, and it has their accounts alone: set CURT_LINKS to where they are")
	ErrForeign = errors.New("this database holds the accounts of other links, or links; use another database")
	ErrNone    = errors.New("this database has no accounts of these links; pass the one that CURT_ACCOUNTS of their servers names")
)

// Of is what says whose accounts a database has, of the key of codes of the links.
func Of(codeKey [32]byte) []byte {
	sum := sha256.Sum256(append([]byte("curt accounts of "), codeKey[:]...))
	return sum[:]
}

// setting returns a setting of the database; nil = there is none.
func (a Accounts) setting(ctx context.Context, name string) (value []byte, err error) {
	err = a.db.Read(ctx, func(t Tx) error {
		_, err := One(t, sqlSetting, func(r *Row) { value = []byte(r.Text()) }, name)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the setting %s: %w", name, err)
	}
	return value, nil
}

func (a Accounts) addSetting(ctx context.Context, name string, value []byte) error {
	err := a.db.Change(ctx, 1, func(t Tx) error {
		_, err := t.Exec(sqlAddSetting, name, value)
		return err
	})
	if err != nil {
		return fmt.Errorf("write the setting %s: %w", name, err)
	}
	return nil
}

// Free returns ErrForeign for a database of accounts whose links are elsewhere: it may have none. ErrMoved:
// it had them.
func (a Accounts) Free(ctx context.Context) error {
	moved, err := a.setting(ctx, SettingMoved)
	if err == nil && moved != nil {
		return ErrMoved
	}
	if err != nil {
		return err
	}
	of, err := a.setting(ctx, SettingAccountsOf)
	if err == nil && of != nil {
		err = ErrForeign
	}
	return err
}

// Beside returns ErrApart when the links of this database have their accounts elsewhere.
func (a Accounts) Beside(ctx context.Context) error {
	apart, err := a.setting(ctx, SettingApart)
	if err == nil && apart != nil {
		err = ErrApart
	}
	return err
}

// Part has the links of one database use the accounts of another, for good. ErrBeside when the
// links have accounts already; ErrForeign when the other database is somebody else's.
func Part(ctx context.Context, beside, apart Accounts, of []byte) error {
	parted, err := beside.setting(ctx, SettingApart)
	if err != nil {
		return err
	}
	if parted == nil {
		any := false
		err := beside.db.Read(ctx, func(t Tx) (err error) {
			any, err = Exists(t, sqlAny)
			return err
		})
		if err == nil && any {
			err = ErrBeside
		}
		if err != nil {
			return err
		}
	}
	if err := apart.Belong(ctx, of); err != nil || parted != nil {
		return err
	}
	return beside.addSetting(ctx, SettingApart, []byte(Apart))
}

// Owned returns ErrForeign or ErrNone unless these are the accounts of links that are elsewhere. It writes nothing.
func (a Accounts) Owned(ctx context.Context, of []byte) error {
	stands, err := a.setting(ctx, SettingAccountsOf)
	if err == nil && stands == nil { // they were left behind by a move, and no server has used them since
		stands, err = a.setting(ctx, SettingMoved)
	}
	switch {
	case err != nil:
		return err
	case stands == nil:
		return ErrNone
	case !bytes.Equal(stands, of):
		return ErrForeign
	}
	return nil
}

// left returns ErrForeign for a database with links, unless they were moved to a store of which it keeps
// the accounts.
func (a Accounts) left(ctx context.Context, of []byte) error {
	moved, err := a.setting(ctx, SettingMoved)
	if err == nil && !bytes.Equal(moved, of) {
		err = ErrForeign
	}
	return err
}

// Belong marks whose accounts these are, for good. ErrForeign when they are somebody else's.
func (a Accounts) Belong(ctx context.Context, of []byte) error {
	links, err := a.setting(ctx, settingCodeKey)
	if err == nil && links != nil {
		err = a.left(ctx, of)
	}
	if err == nil {
		err = a.addSetting(ctx, SettingAccountsOf, of)
	}
	if err != nil {
		return err
	}
	stands, err := a.setting(ctx, SettingAccountsOf)
	if err == nil && !bytes.Equal(stands, of) {
		err = ErrForeign
	}
	return err
}
