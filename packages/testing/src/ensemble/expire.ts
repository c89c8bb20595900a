import { connect, type Client } from '@zabra/client'

/**
 * Ends the session of a client behind its back, as when it had been silent for too long: its ephemeral znodes go, and the
 * client learns it from the server. `servers` is a connect string of the server or ensemble that it is connected to.
 */
export async function expireSession(servers: string, client: Pick<Client, 'session'>): Promise<void> {
  const { id, password } = client.session
  const twin = await connect({ servers, session: { id, password }, sessionExpiry: 'close' })
  await twin.close()
}
