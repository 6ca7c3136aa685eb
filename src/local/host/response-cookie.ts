/** A cookie of a function's answer as the text of one `Set-Cookie` header. */

import type { RpcCookie } from './rpc-types.ts';

const SAME_SITE: Record<string, string> = { lax: 'Lax', strict: 'Strict', explicitNone: 'None' };

export function responseCookie(cookie: RpcCookie): string {
  const parts = [`${cookie.name}=${encodeURIComponent(cookie.value)}`];
  if (cookie.domain?.value) parts.push(`Domain=${cookie.domain.value}`);
  if (cookie.path?.value) parts.push(`Path=${cookie.path.value}`);
  const expires = cookie.expires?.value?.seconds;
  if (expires !== undefined) parts.push(`Expires=${new Date(expires * 1000).toUTCString()}`);
  if (cookie.maxAge?.value !== undefined) parts.push(`Max-Age=${Math.trunc(cookie.maxAge.value)}`);
  if (cookie.secure?.value) parts.push('Secure');
  if (cookie.httpOnly?.value) parts.push('HttpOnly');
  const sameSite = SAME_SITE[cookie.sameSite ?? ''];
  if (sameSite !== undefined) parts.push(`SameSite=${sameSite}`);
  return parts.join('; ');
}
