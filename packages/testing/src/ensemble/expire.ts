import { connect, type Client } from '@zabra/client'

/**
 * Expires the session of a client without its cooperation, as after a long silence: its ephemeral znodes are deleted
 * and the server reports the expiry to the client. `servers` is a connect string of the server or ensemble that the client
 * uses.
 */
export async function expireSession(servers: string, client: Pick<Client, 'session'>): Promise<void> {
  const { id, password } = client.session
  const twin = await connect({ servers, session: { id, password }, sessionExpiry: 'close' })
  await twin.close()
}
