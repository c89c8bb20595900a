/** The child's path. */
export const join = (parent: string, name: string): string =>
  parent === '/' ? `/${name}` : `${parent}/${name}`

/** Whether a path is the server's own, which no command changes. */
export const isReserved = (path: string): boolean => path === '/zookeeper' || path.startsWith('/zookeeper/')
