/**
 * Where a connection is in its life. `new`: nothing is known of the client. `connecting`: its session is on its way.
 * `open`: requests are served. `closing`: what is written goes out and nothing more is read. `closed`: it is gone.
 */
export type ConnectionPhase = 'new' | 'connecting' | 'open' | 'closing' | 'closed'
