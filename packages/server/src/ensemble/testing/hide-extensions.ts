import type { Ensemble } from './ensemble.ts'

/** Makes members say nothing of themselves on new connections, as those of Apache ZooKeeper do. Returns a function that ends it. */
export function hideExtensions({ network }: Pick<Ensemble, 'network'>): () => void {
  const connect = network.connect.bind(network)
  network.connect = async (to, options) => {
    const connection = await connect(to, options)
    const write = connection.write.bind(connection)
    connection.write = (bytes) => {
      const changed = Buffer.from(bytes)
      const at = changed.indexOf('_zabra')
      if (at !== -1) changed[at] = 0
      return write(changed)
    }
    return connection
  }
  return () => (network.connect = connect)
}
