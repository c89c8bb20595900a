import { errorName } from '@zabra/protocol'
import { formatZxid, type Operation, type Request } from '../history/records.ts'

/** Describes an operation in a violation. */
export function describeOperation({
  request,
  session,
  xid,
  server,
  invoked,
  returned,
  outcome,
  zxid,
  result,
}: Operation): string {
  const answer =
    outcome === 'answered'
      ? `${result.err === 0 ? 'ok' : errorName(result.err)} at ${formatZxid(zxid)}, ${invoked.toFixed(1)} to ${returned.toFixed(1)} ms`
      : `${outcome}, sent at ${invoked.toFixed(1)} ms`
  return `${describeRequest(request)} (request ${xid} of session ${session} at ${server}: ${answer})`
}

function describeRequest(request: Request): string {
  switch (request.op) {
    case 'multi':
      return `multi [${request.parts.map(describeRequest).join(', ')}]`
    case 'multiRead':
      return `multiRead [${request.parts.map(({ op, path }) => `${op} ${path}`).join(', ')}]`
    case 'close':
    case 'whoAmI':
      return request.op
    case 'removeWatches':
    case 'checkWatches':
      return `${request.op} ${request.watches} ${request.path}`
    case 'reconfig':
      return `reconfig +${request.joining} -${request.leaving}`
    case 'create':
      return `create ${request.mode} ${request.path}`
    case 'set':
    case 'delete':
    case 'check':
      return `${request.op} ${request.path} v${request.version}`
    case 'setAcl':
      return `setAcl ${request.acl} ${request.path} v${request.version}`
    case 'addWatch':
      return `addWatch ${request.recursive ? 'recursive ' : ''}${request.path}`
    case 'getAcl':
    case 'ephemerals':
    case 'count':
    case 'get':
    case 'exists':
    case 'children':
    case 'sync':
      return `${request.op} ${request.path}${'watch' in request && request.watch ? ' with a watch' : ''}`
  }
}
