import { connect, type Client, type Codec } from '@zabra/client'
import { LeaderElection, Mutex, Queue, TreeCache } from '@zabra/recipes'
import { median } from '../figures.ts'

/** Runs one measurement with @zabra/recipes and prints one figure. Arguments: address, work, amount, path, seconds. */
const [servers = '', work = '', amount = '1', path = '/', seconds = '1'] = process.argv.slice(2)
const clients: Client[] = []

async function open(): Promise<Client> {
  const client = await connect({ servers, sessionTimeoutMs: 20_000, signal: AbortSignal.timeout(15_000) })
  clients.push(client)
  return client
}

async function locks(contenders: number): Promise<number> {
  for (let n = 0; n < contenders; n++) await open()
  const until = performance.now() + Number(seconds) * 1000
  let turns = 0
  await Promise.all(
    clients.map(async (client) => {
      const mutex = new Mutex(client, path)
      while (performance.now() < until) {
        await mutex.run(() => Promise.resolve(performance.now() < until && turns++))
      }
    }),
  )
  return turns / Number(seconds)
}

/** Returns the median milliseconds from the end of a leader's session to the next leader. */
async function election(rounds: number): Promise<number> {
  const first = async (client: Client): Promise<void> =>
    void (await new LeaderElection(client, path).leadership().next())
  const times: number[] = []
  let leader = await open()
  await first(leader)
  for (let n = 0; n < rounds; n++) {
    const next = await open()
    const won = first(next)
    while ((await next.getChildren(path)).children.length < 2);
    await new Promise((resolve) => setTimeout(resolve, 50))
    const began = performance.now()
    void leader.close()
    await won
    times.push(performance.now() - began)
    leader = next
  }
  return median(times)
}

const bytesCodec: Codec<Uint8Array> = { encode: (value) => value, decode: (data) => data }

/** Returns items per second through a queue: put sequentially and consumed concurrently. */
async function throughQueue(
  items: number,
  consume: (queue: Queue<Uint8Array>) => Promise<void>,
): Promise<number> {
  const producer = new Queue(await open(), path, { codec: bytesCodec })
  const consumer = new Queue(await open(), path, { codec: bytesCodec })
  const began = performance.now()
  const consuming = consume(consumer)
  for (let n = 0; n < items; n++) await producer.put(new Uint8Array(100))
  await consuming
  return items / ((performance.now() - began) / 1000)
}

/** At least once: each item is acknowledged before the next one is received. */
const queue = (items: number): Promise<number> =>
  throughQueue(items, async (consumer) => {
    let left = items
    for await (const message of consumer.receive()) {
      await message.ack()
      if (--left === 0) return
    }
  })

/** At most once: an item is removed when it is taken. */
const take = (items: number): Promise<number> =>
  throughQueue(items, async (consumer) => {
    for (let n = 0; n < items; n++) await consumer.take()
  })

/** Returns the milliseconds until the cache is complete. */
async function cache(): Promise<number> {
  const client = await open()
  const began = performance.now()
  const tree = new TreeCache(client, path)
  await tree.ready
  const ms = performance.now() - began
  await tree.close()
  return ms
}

/** Creates the znodes for the cache, a thousand below each child. */
async function fill(nodes: number): Promise<number> {
  const client = await open()
  await client.create(path)
  for (let folder = 0; folder * 1000 < nodes; folder++) {
    const below = `${path}/${folder}`
    await client.create(below)
    const count = Math.min(1000, nodes - folder * 1000)
    await Promise.all(
      Array.from({ length: count }, (_, n) => client.create(`${below}/${n}`, { data: new Uint8Array(100) })),
    )
  }
  return nodes
}

const works: Readonly<Record<string, (amount: number) => Promise<number>>> = {
  locks,
  election,
  queue,
  take,
  cache,
  fill,
}
const figure = await works[work]!(Number(amount))
console.log(`figure ${figure}`)
await Promise.all(clients.map((client) => client.close()))
