"""Creates, reads, changes and deletes a link by the client that openapi-python-client made."""

import sys

from made import AuthenticatedClient
from made.api.links import change_link, create_link, delete_link, get_link
from made.models import LinkChange, LinkCreate, LinkState, RedirectStatus

base, key, code = sys.argv[1:]
client = AuthenticatedClient(base_url=base, token=key)
made = create_link.sync(client=client, body=LinkCreate(long_url="https://example.com/a", custom_alias=code))
print("created", made.long_url, str(made.state == LinkState.LINK_STATE_LIVE).lower())
read = get_link.sync(code, client=client)
print("read", str(read.id == made.id).lower(), str(read.redirect_status == RedirectStatus.REDIRECT_STATUS_302).lower())
changed = change_link.sync(code, client=client, body=LinkChange(title="Changed"))
print("changed", changed.title, changed.long_url)
gone = delete_link.sync_detailed(code, client=client)
after = get_link.sync_detailed(code, client=client)
print("deleted", int(gone.status_code), after.parsed.type_)
