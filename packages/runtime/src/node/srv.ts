/** Resolves to the hosts and ports of the SRV records of a name. Rejects when it has none. `resolve` replaces the resolver of the system. */
export async function resolveSrv(
  name: string,
  // Looked up at each call: `setServers` replaces the functions of the module, and an older function keeps using the previous
  // servers.
  resolve: (name: string) => Promise<{ name: string; port: number }[]> = async (asked) =>
    (await import('node:dns/promises')).default.resolveSrv(asked),
): Promise<{ host: string; port: number }[]> {
  const records = await resolve(name)
  return records.map(({ name: host, port }) => ({ host, port }))
}
