"""Checkpoints written by TensorFlow 2.21, compressed by zlib, in base 85."""

from __future__ import annotations

import base64
import zlib
from pathlib import Path

GOLDEN = {
    "parts.data-00000-of-00001": (
        "c-qCu!7JVY9LMqRgL#-"
        "892^`R92}M$92^|fer5*;2ZtRT9Bgyg!NEasaCp*Mk|b$KT2GQBElHBJp4M8DmLzFOPiskQElEpDYp*By8+_"
        "{ZxxCYHx7?G$MI=c?CP_uKL~>g)g_7Krh%7nsh29!bNiB^ebkajV8Ah38hAd00vPq5|_BkfcITu_LPa{ew;}"
        "MlqQB4iC)bW@G8fl`L780J(P6wSlr;BcS=;bwi^fSN^!(<rY4R0A`jBzHIWQu9tF~cl#yeG>%3oNq4GAn#wl"
        "{MDcV3RGj`ACjWeC7)~?6SvK_Br5?BaZpT38&=w&JWHw=O@4T%>|cS@rP^va>GBOEh0q`#gy=XQqq)B&O<8N"
        "QpGWns!tCtzIgencj(^tAMJp!Py"
    ),
    "parts.index": (
        "c-"
        "muNVB=tvV&Y(A;1^>kNGvMRFK1w6WNKL4(8R$g#397Qp$x=K3UV4Vm`tONNd|JWh%ZK$+{Ofw{W5!=0RuC4q"
        "J9zwrx1e%hw1L?^97k0Ma!XTnZRl}Gz3hAuW>JAU=>WuNlY*1;1Xg1OGs!inZ|E8*T}#kn30&1#vu$9m(pM{"
        "J(T|4jDbxF;y$QxZXj7J4lX7EWgup<;^JcAP=>G>Sj0<GD@r)nk?cLkqS4Q2s;+X~hXDu}K?L7Y-"
        "=lEOflmuJFfcNgGW=$Qixv6buxnuA=w;$(APB;LH*~9%y59x>&vG~C"
    ),
    "v1": (
        "c-n>1Pe>GD7{~GFeRtLw-xb|vi<TwGRu3UT9y)Xg+%&2~2Z^AF4sL{rc#tym5I9MMRD?v-"
        "Qc_z+m_#i02Z@L!A|xU#BBUagh>(a7iI9ruJL9Z&>m5GByw5xHzQ1{AM2;!bZ(=5rUBBOzWMx{+O25<VI<9u"
        "KFR9X&5srk3ws&O@9(JvuY|@&dYpjlJS9@4X1hocJ(Vaci6Hc-"
        "<oWwCYUI(2v#&YTwt{GEeR}0IF61OT0l8Wq9cBFDmuPCLxey`tMy^tzMl5!j3BE=@*B$CO9co`K-"
        "1mSo<ar?4zR`R5*y;_MfEBv70cp{AL58Itlug~+8s=lKaatEu9cmr-hFTF}Re(I8L$Y}|h=V!>2Gl=9-"
        "L<zE4B#v4%B7;`6p&K3sF@zlQ7)1dSC}I**m_`XRn8iG#S;T^aD#WoINvuLG>aiB<(1;D#h)u{~3$|kiTCod"
        "zun%oGfDUw_8$Ia5QFs`@ah$*)PBzD^dwRs*y78s0`{#R?H}5nzpTQ8$;vCK+hl?1-W#n-"
        "U*Kq@*7{e{xMgilvi~E?s13bhd6!92O@D!7HhUa*JDZIjKyumcy;ypf~gpc@y&zQj%e8o4+Vh-Q&1M~Qa-"
        "}nP*5mC^Hz(N!iu;HK*2C)|Zms0+zX{_euVy8HFwIC{@<bu6eyHaYM8@8RBc8&bE?f&JRsz0*r-CyRMvT*"
    ),
    "v2.data-00000-of-00001": ("c-muUfPn+{AcBFx!GVFH!GV#1!G^&B04!Gnga"),
    "v2.index": (
        "c-muNVB=tvV&Y(AVCGKLPvYPdV$k3)-"
        "F<z&AQPi#IR~Q<hY%A769_ACXb6}JU*lfLz$%!QlbBx2!6n23mXOe3GL7GGu91O7Fe5Q1jYAkJE~UX@dMN$7"
        "83Pb7f{5VWo#}ASflmuJFfcM@GUUL87M>N8Ddec*V;};A|8D43DRsXM0CKt>00"
    ),
    "v3.data-00000-of-00001": (
        "c-"
        "muN0D%U3AmIQ+4vav?0mj+Bhhn(+xi~o(g;;a*Q&MxZm^c`@gt%Ban1mS1ffTb4BSg$a$c~FI%rVH*(aFa(K"
        "FrZ4)K!QhEU_pvF)1fiN(ro4zg%C>F(f3&(<wB>HCP{2HP{qxpph&>j0Rwin~(z@BUK<q=I9#`Fcbg|S}#)"
    ),
    "v3.index": (
        "c-"
        "muNVB=tvV&Y(Akl~AW_HcFf4)FK%3vqPvagFzP@^W<!iFXfj4DjG!7h+Hl(KyCvdZ}q`B7+KVZhlH?j((25f"
        "xez&NJx;UQ)q~5uzr|hkSADgn4?dqD+e=BlYj<`sjO&IDw_;{IX<<FLM%c|94s0FrjvVL8!-"
        "R@BZxTv;_EIr=fJ0h8yFaw^B5K|!o|#&+TL8s$gzo$pMf9<|J~57QtEyi0N=JVa{"
    ),
}


def content(name: str) -> bytes:
    """The bytes of a file."""
    return zlib.decompress(base64.b85decode(GOLDEN[name]))


def unpack(folder: Path) -> None:
    """Write all files."""
    for name in GOLDEN:
        (folder / name).write_bytes(content(name))
