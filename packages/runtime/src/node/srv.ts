/** Where the SRV records of a name point to. Rejects when it has none. `resolve` is another resolver than the system's. */
export async function resolveSrv(
  name: string,
  // Looked up at each call: `setServers` replaces the functions of the module, and one that was taken before keeps asking
  // the servers of then.
  resolve: (name: string) => Promise<{ name: string; port: number }[]> = async (asked) =>
    (await import('node:dns/promises')).default.resolveSrv(asked),
): Promise<{ host: string; port: number }[]> {
  const records = await resolve(name)
  return records.map(({ name: host, port }) => ({ host, port }))
}
