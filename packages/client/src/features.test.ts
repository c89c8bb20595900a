// oxlint-disable no-restricted-imports -- a table of tests looks into their files
import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'

/** What is promised, and the test that proves it: its file, from here, and its title there. */
type Row = readonly [promise: string, file: string, title: string]

const session = 'session/session.test.ts'
const scripted = 'session/scripted.test.ts'
const operations = 'client.test.ts'
const watches = 'watches/watches.test.ts'
const hosts = 'servers/host-list.test.ts'
const scenarios = 'testdata/scenarios.ts'
const node = 'node/node.test.ts'
const runtime = '../../runtime/src/node'
const interop = '../../../apps/interop/src'

const connection: readonly Row[] = [
  ['heartbeats', session, 'of a session of %d ms: ping after %d, drop after %d, expiry after %d'],
  [
    'reconnects under the same session',
    session,
    'survives a lost connection, with its ephemeral znodes and its watches',
  ],
  ['notices a connection that is half open', session, 'notice a connection that is half open'],
  ['goes on with a session by id and password', session, 'given with a wrong password counts as expired'],
  ['leaves a session to a successor', session, 'is handed over to a successor by detach'],
  [
    'a new session after expiry',
    session,
    'that expired is followed by a new one, and nothing of the old is carried over',
  ],
  ['or an end, as an option', session, 'that the server has expired is told as such'],
  ['expiry without a server in reach', scenarios, 'an expired session is replaced, and says so'],
  [
    'a first connect with a limit',
    session,
    'gives up when its signal aborts, and says why the last attempt failed',
  ],
  ['an attempt with a limit', session, 'limits an attempt from the name to the answer of the server'],
  ['servers by DNS SRV', 'servers/service.test.ts', 'are looked up again, and what is new is moved to'],
  [
    'from a real resolver',
    'node/services.test.ts',
    'are looked up anew when the connection is lost, and the session moves to them',
  ],
  [
    'all addresses of a name',
    'node/addresses.test.ts',
    'the addresses of one name are tried one after the other within an attempt',
  ],
  [
    'a name that is not known yet',
    'node/addresses.test.ts',
    'a name is looked up anew at each attempt, and one that nobody knows is a failed attempt and no more',
  ],
  ['chroot in the connect string', operations, '%s maps every call, result and event'],
  [
    'several roots over one session',
    operations,
    'of a view leaves the session and the watches of others alone when it closes',
  ],
  [
    'a change of the server list',
    session,
    'moves the client, with its session, once what is in flight is answered',
  ],
  [
    'even spreading after that change',
    hosts,
    'spreads 10,000 clients evenly over every list of a series of changes',
  ],
  [
    'follows the configuration of the ensemble',
    'regressions/ensemble.test.ts',
    'following the ensemble survives an error that has nothing to do with the session',
  ],
  [
    'names looked up at every attempt',
    'servers/names.test.ts',
    'the name of a server goes to the transport at every attempt, so that it is looked up anew',
  ],
  ['hosts in random order', hosts, 'shuffles the servers with the random source that it is given'],
  [
    'growing waits with chance between rounds',
    'servers/backoff.test.ts',
    'is drawn below a bound that doubles with every round, up to ten seconds',
  ],
  ['read-only servers', scripted, 'is taken only by a client that asked for one'],
  [
    'the search for a server that takes writes',
    scripted,
    'is left, with the session, as soon as another one takes writes',
  ],
  [
    'TLS by the name of the server',
    `${runtime}/tls.test.ts`,
    'refuses a server that has another name, unless it is told not to look',
  ],
  ['certificates of clients', node, 'is known by its certificate'],
  [
    'certificates read again without a restart',
    `${runtime}/tls.test.ts`,
    'are used by new connections after a reload, and those that exist go on',
  ],
  ['SASL as a plug-in', scripted, 'is done on every connection before anything else'],
  ['SASL with DIGEST-MD5', 'sasl.test.ts', 'gives the client an identity, again on every connection'],
  [
    'an end when a login is refused',
    'sasl.test.ts',
    'a refused login ends the client and its connection, and leaves its session to run out',
  ],
  [
    'identities before any request',
    session,
    'is the handshake, the identities, the watches and then what waits',
  ],
  [
    'identities that are added later',
    session,
    'proves an identity that was added while there was no connection',
  ],
  ['WebSockets, in browsers', `${interop}/browser.test.ts`, 'plays every scenario over WebSockets'],
  ['transports that are brought along', 'scenarios.test.ts', 'on a simulated network'],
  ['a deadline for a request', session, 'have a deadline if they are given one'],
  ['cancellation of a request', session, 'can be withdrawn'],
  ['a limit on answers', scripted, 'longer than allowed ends the connection before anything is kept'],
  [
    'order kept across retries',
    'regressions/moved-fifo.test.ts',
    'keeps the order of requests when the first of several is answered with SessionMoved',
  ],
  ['order of a thousand in flight', scenarios, 'a thousand requests in flight keep their order'],
  [
    'local sessions understood',
    scripted,
    'of a server with local sessions refuses an ephemeral znode, and the session goes on',
  ],
]

const requests: readonly Row[] = [
  ['create, delete, exists, getData, setData', operations, 'creates, reads, writes and deletes a znode'],
  ['getChildren with the stat', operations, 'lists children with the stat of their parent'],
  ['access control lists', operations, 'reads and writes access control lists'],
  [
    'create gives the stat',
    operations,
    'gives a number that grows over re-creations, to fence off whoever came before',
  ],
  ['containers', operations, 'creates containers, which the server removes after their last child'],
  ['times to live', operations, 'creates znodes with a time to live'],
  ['transactions', operations, 'carries out a multi with typed results'],
  ['reads of one moment', operations, 'reads many znodes in one request'],
  ['sync', scenarios, 'every operation, and the errors that belong to them'],
  ['a barrier that a quorum commits', operations, 'commits a transaction without effect'],
  ['getConfig and reconfig', operations, 'reads the configuration of the ensemble'],
  [
    'reconfig tried again',
    'regressions/codes.test.ts',
    'a reconfiguration that the server answers with %i is tried again with backoff',
  ],
  ['getEphemerals within the chroot', operations, 'keeps neighbours of its name out of the ephemerals'],
  ['getAllChildrenNumber', scenarios, 'every operation, and the errors that belong to them'],
  ['whoAmI', operations, 'proves identities and tells who it is'],
  ['missing parents', operations, 'makes missing parents as containers, or as persistent znodes'],
  ['walking and deleting trees', operations, 'walks a tree and deletes it'],
  [
    'walking ahead of who reads',
    'trees.test.ts',
    'asks for what comes next while one is looked at, and for no more than 64 ahead',
  ],
  [
    'deleting trees in transactions',
    'trees.test.ts',
    'comes in transactions of as many znodes as are wanted, and says how far it is',
  ],
]

const watching: readonly Row[] = [
  ['one-shot watches of data', watches, 'reads and tells of the next change, once'],
  ['of existence', watches, 'of kind exists waits for a creation'],
  ['of children', watches, 'of kind children tells of children and of the end of the parent'],
  ['persistent watches', watches, 'tells of every change of a node and its children'],
  [
    'persistent recursive watches',
    watches,
    'of mode persistentRecursive tells of everything below, and never of children lists',
  ],
  ['removal', watches, 'is removed from the server when nobody waits any more'],
  ['restored after a reconnect', watches, 'fires for a change that came while the connection was gone'],
  ['in requests below the limit of servers', watches, 'are set again in requests of at most 128 KiB'],
  [
    'by the old request as long as that is enough',
    session,
    'keeps to the old watch request as long as that is enough',
  ],
  ['the transaction in the event', watches, 'carries the transaction of the change'],
  [
    'a word about events that may be missing',
    watches,
    'says after each reconnect that events may be missing',
  ],
  ['streams instead of callbacks', watches, 'is removed by leaving the loop'],
  ['bounded, with a word about what overflowed', watches, 'collapses what nobody reads into one item'],
]

const reliability: readonly Row[] = [
  ['retry policies', session, 'counts attempts and time of the policy'],
  ['protected creates', session, 'of a sequential create is found by its mark, so that there is one znode'],
  ['that clean up', session, 'of a sequential create whose caller has gone leaves no znode behind'],
  ['repeated creates', session, 'of an ephemeral create is made sure of by its owner'],
  [
    'repeated writes',
    session,
    'of a write with a version is told when the data could be ours, and is success if that is enough',
  ],
  ['repeated deletes', session, 'of a delete is success when the znode is gone'],
  ['guaranteed deletes', session, 'of a guaranteed delete does not matter, even to a caller that has gone'],
  ['states of suspension and loss', session, 'that the server has expired is told as such'],
  ['an error policy', operations, 'tells what is built on it which policy holders of locks follow'],
  [
    'whether a request may have been carried out',
    'regressions/timers.test.ts',
    'a request that never reached the transport is not maybeApplied',
  ],
  ['and that it may', session, 'of a write that cannot be repeated says that it may have been carried out'],
  [
    'until when a session surely lives',
    session,
    'lies a timeout less a margin after a committed write, and stands while cut off',
  ],
]

const experience: readonly Row[] = [
  ['promises, for every call', 'regressions/poison.test.ts', 'never throws synchronously'],
  ['types in the package', 'readme.test.ts', 'pass the type checker'],
  ['all that was agreed is public', 'public-api.test.ts', 'a client has every operation'],
  [
    'one write for all requests of a turn',
    'session/one-write.test.ts',
    'requests of one turn leave in one write',
  ],
  [
    'reads that leave together',
    'session/batch-twin.test.ts',
    'calls come to the same whether reads leave together or not',
  ],
  ['Deno and Bun', `${interop}/runtimes.test.ts`, 'works %s, and ends when it is closed'],
  ['the scenarios on a simulated network', 'scenarios.test.ts', 'on a simulated network'],
  ['on our server', `${interop}/our-client.test.ts`, 'our client on our server'],
  ['on Apache ZooKeeper', `${interop}/our-client.test.ts`, 'our client on Apache ZooKeeper'],
  [
    'on an ensemble of it',
    `${interop}/our-client.test.ts`,
    'our client on an ensemble of three Apache ZooKeeper servers',
  ],
  [
    'a fault at every frame of a session',
    'faults.test.ts',
    '%s: settles every promise and accounts for every watch',
  ],
  ['exact numbers of 64 bits', scripted, 'with numbers of 64 bits gives them exactly'],
  ['compressed values', 'node/compressed.test.ts', 'gives back what it was given, in fewer bytes'],
  [
    'thousands of clients behind one timer',
    'session/due-times.test.ts',
    'falls due at its own time, in order, behind a single timer',
  ],
  ['values through codecs', operations, 'reads, writes and changes values through a codec'],
  ['hooks for tracing and metrics', 'otel.test.ts', 'makes a span and a measurement of each request'],
  [
    'channels of Node',
    'node/diagnostics.test.ts',
    'tells listeners of requests, states and events, without data',
  ],
  [
    'tests that are the same every time',
    'regressions/fuzz.test.ts',
    'seed %i: every promise settles, with its own answer',
  ],
  ['a server within the process', '../../server/src/readme.test.ts', 'runs the example of the README'],
  ['release at the end of a scope', session, 'disposes of the client at the end of a scope'],
  [
    'installs without a compiler',
    `${interop}/tarballs.test.ts`,
    'brings nothing but our own packages and ws',
  ],
  [
    'small enough for browsers',
    `${interop}/browser.test.ts`,
    'the client for browsers is under 40 kB when it is minified and compressed',
  ],
]

const wishes: readonly Row[] = [
  ['a client in a browser', `${interop}/browser.test.ts`, 'plays every scenario over WebSockets'],
  [
    'a first connect that fails in time',
    session,
    'gives up when its signal aborts, and says why the last attempt failed',
  ],
  [
    'expiry told while cut off',
    'regressions/elsewhere.test.ts',
    'expiry bears the number of the protocol, in the error and for whoever waited',
  ],
  ['requests sent again where that is safe', session, 'of a read is asked for again'],
  [
    'a number to fence with',
    operations,
    'gives a number that grows over re-creations, to fence off whoever came before',
  ],
  [
    'names that move',
    'servers/names.test.ts',
    'the name of a server goes to the transport at every attempt, so that it is looked up anew',
  ],
  [
    'watches that do not leak',
    'regressions/churn.test.ts',
    'seed %i: the registry is empty when all watches are closed, and no event finds nobody',
  ],
  ['TLS and SASL from Node', node, 'does not trust a server that it has no reason to trust, and says so'],
  ['a word when all is in step again', watches, 'lives on in a new session, and says so'],
  ['readers that take their time', watches, 'whose reader takes its time holds up nobody'],
  [
    'an end while no server is in reach',
    session,
    'resolves at once without a connection, and rejects what waits',
  ],
]

/** What users of other clients for Node have suffered from, and what was found in them. */
const elsewhere: readonly Row[] = [
  [
    'dead after expiry',
    session,
    'that expired is followed by a new one, and nothing of the old is carried over',
  ],
  ['hanging while connecting', session, 'limits an attempt from the name to the answer of the server'],
  [
    'a first connect that never fails',
    session,
    'gives up when its signal aborts, and says why the last attempt failed',
  ],
  [
    'more connections with each reconnect',
    'regressions/elsewhere.test.ts',
    'a connection that is lost over and over does not multiply connections',
  ],
  [
    'watches that double with each reconnect',
    watches,
    'that has not fired is set again, once, however often the connection is lost',
  ],
  ['several listeners that cost several watches', watches, 'on one path cost the server one'],
  ['errors without classes', operations, 'are of the class, the code and the category of the table'],
  ['no TLS', node, 'is known by its certificate'],
  ['no SASL', 'sasl.test.ts', 'gives the client an identity, again on every connection'],
  [
    'native code that does not build',
    `${interop}/tarballs.test.ts`,
    'brings nothing but our own packages and ws',
  ],
  ['a crash by what a server sends', scripted, 'that is malformed fails its request and ends the connection'],
  [
    'and by events that are none',
    'regressions/hostile.test.ts',
    'an event with the path %j, which is none, does not hang the process',
  ],
  ['no worker threads', `${interop}/tarballs.test.ts`, 'works in several worker threads at once'],
  [
    'state shared between clients',
    'regressions/elsewhere.test.ts',
    'two clients of one process share nothing: what becomes of one does not matter to the other',
  ],
  ['few operations', scenarios, 'every operation, and the errors that belong to them'],
  ['a close that hangs', session, 'waits for a server that does not answer for two seconds at most'],
  ['no browsers', `${interop}/browser.test.ts`, 'plays every scenario over WebSockets'],
  [
    'identities and watches behind requests',
    session,
    'is the handshake, the identities, the watches and then what waits',
  ],
  ['second znodes by second tries', scenarios, 'sequential nodes are made once each while connections break'],
  ['all watches in one request', watches, 'are set again in requests of at most 128 KiB'],
  [
    'the newest transaction from any header',
    scripted,
    'tells the newest transaction that the client has seen, and never an older one',
  ],
  [
    'and from headers of events',
    scripted,
    'do not move the newest transaction that is told to the next server',
  ],
  [
    'a number of its own for expiry',
    'regressions/elsewhere.test.ts',
    'expiry bears the number of the protocol, in the error and for whoever waited',
  ],
  [
    'an assertion about error numbers',
    scripted,
    'with an error that the client does not know fails the request alone',
  ],
  [
    'exceptions that reach the socket',
    'regressions/elsewhere.test.ts',
    'a reader of events that throws breaks neither the connection nor other readers',
  ],
  ['recursion by frames', scripted, 'are taken without recursion'],
]

describe.each([
  ['connections and sessions', connection],
  ['operations', requests],
  ['watches', watching],
  ['reliability', reliability],
  ['what developers live with', experience],
  ['what users wish for', wishes],
  ['what went wrong elsewhere', elsewhere],
])('%s: there is a test for', (_group, rows) => {
  it.each(rows)('%s', (_promise, file, title) => {
    const text = readFileSync(new URL(file, import.meta.url), 'utf8')
    // The whole title of a test, of a group of tests, or of a scenario that several files play.
    expect(text, `${file} has a test with this title`).toContain(`'${title}'`)
  })

  it('each promise once', () => {
    const promises = rows.map(([promise]) => promise)
    expect(promises.filter((promise, index) => promises.indexOf(promise) !== index)).toEqual([])
  })
})
